"""scripts/reproduce: prepares what is missing, trains, prints the tables, and goes on."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT

SEGMENTED = "看\tB\n似\tE\n，\tS\n\n" * 3
NER = "Anna\tB-person\nLi\tI-person\nleft\tO\n\n" * 3
PARTS = ("train", "dev", "test")


@pytest.fixture
def project(tmp_path):
    """A copy of the project's scripts and configs, and SOURCES with a corpus in it."""
    for name in ("configs", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "main.py", tmp_path)
    (tmp_path / "sources" / "cws").mkdir(parents=True)
    for part in PARTS:
        (tmp_path / "sources" / "cws" / f"{part}.bmes").write_text(SEGMENTED, "utf-8")
    return tmp_path


def reproduce(project, *arguments):
    environment = {**os.environ, "REPRODUCE_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    command = [project / "scripts" / "reproduce", *arguments]
    return subprocess.run(command, env=environment, cwd=project, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "scripts/reproduce SOURCES [CORPUS ...]"),
        (["nowhere"], "reproduce: nowhere: no such folder"),
        (["sources", "conll2004"], "reproduce: conll2004: no such corpus in configs/"),
        (["sources", "wnut17"], "reproduce: there is no wnut17 in "),
    ],
)
def test_what_is_missing_is_told_at_once(project, arguments, said):
    done = reproduce(project, *arguments)
    assert done.returncode == 2 and said in done.stderr and not done.stdout


@pytest.mark.slow
def test_it_prepares_trains_prints_and_does_nothing_twice(project):
    for name, text in dict.fromkeys(PARTS, NER).items():  # a corpus that data/ has is not prepared
        path = project / "data" / "wnut17" / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    glove = project / "data" / "glove" / "glove.6B.100d.txt"
    glove.parent.mkdir()
    glove.write_text(f"anna {' '.join(['0.5'] * 100)}\n", encoding="utf-8")
    wanted = ["sources", "wnut17", "cws", "--seeds", "1", "--iteration", "1", "--threads", "1"]
    done = reproduce(project, *wanted)
    assert done.returncode == 0, done.stderr
    tables = done.stdout.rpartition("\nwnut17\n")[2].split("\ncws\n")
    assert "/char_cnn-word_lstm-crf.config |" in tables[0]
    assert "/bigram-nochar-word_lstm-crf.config |" in tables[1]
    results = sorted((project / "runs" / "reproduce").glob("*/*/results.jsonl"))
    before = [path.read_bytes() for path in results]
    assert len(before) == 5 and all(text.count(b"\n") == 1 for text in before)
    assert reproduce(project, *wanted).returncode == 0
    assert [path.read_bytes() for path in results] == before
