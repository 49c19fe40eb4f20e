"""What the log says when a file was decoded."""

import logging

import pytest

from ncrf.config import load_config
from ncrf.decode.files import decode_file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Anna\n", "decoded 1 sentence, 1 token in "),
        ("Anna\nleft\n\nBo\n", "decoded 2 sentences, 3 tokens in "),
    ],
)
def test_one_is_no_plural(text, said, trained, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    (tmp_path / "raw").write_text(text)
    keys = {"raw_dir": str(tmp_path / "raw"), "decode_dir": str(tmp_path / "out")}
    decode_file(load_config({**keys, "load_model_dir": str(trained)}))
    assert caplog.messages[-1].startswith(said)
