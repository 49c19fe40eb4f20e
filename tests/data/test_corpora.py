"""What the log says of a corpus is what ``ncrf check`` says of it."""

import logging

import pytest

from ncrf.config import load_config
from ncrf.data.corpora import load_corpus
from ncrf.data.inspection import Inspector
from ncrf.data.inspection_report import report_lines


@pytest.mark.parametrize(
    ("text", "keys", "columns"),
    [
        ("Oslo X B-LOC\n", {"columns": "word,[POS],label"}, "word,[POS],label (spaces)"),
        ("Oslo\tB-LOC\n", {}, "word,label (tabs)"),
        ("so so ||| neutral\n", {"sentence_classification": True}, "word,label (|||)"),
    ],
)
def test_the_columns(text, keys, columns, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    path = tmp_path / "train"
    path.write_text(text)
    config = load_config(keys, check_files=False)
    load_corpus(config, str(path))
    assert caplog.messages[0].endswith(f" tokens; columns {columns}")
    lines = report_lines(Inspector(config).inspect(str(path)))
    assert lines[2] == f"  columns     {columns}"
