"""``ncrf check``: its files, its report, its exit status."""

import io

import pytest

from ncrf.cli import main
from tests.conftest import SAMPLE

TRAIN = "Oslo B-LOC\nCity I-LOC\n\nBo I-PER\n"


@pytest.fixture
def files(tmp_path):
    train, dev = tmp_path / "train", tmp_path / "dev"
    train.write_text(TRAIN)
    dev.write_text("Bo B-PER\n\nAnna B-ORG\n")
    return str(train), str(dev)


def test_one_file(files, capsys):
    assert main(["check", files[0]]) == 0  # ill-formed labels are no error
    out, err = capsys.readouterr()
    assert out == (
        f"{files[0]}\n"
        "  sentences   2, tokens 3\n"
        "  columns     word,label (spaces)\n"
        "  scheme      IOB2 (detected)\n"
        "  entities    2: LOC 1, PER 1\n"
        "  ill-formed  1 sentence, 1 place\n"
        f"              {files[0]}:4: I-PER at the start of a sentence\n"
        "  duplicates  none stand in this file before\n"
        "  longest     sentence 2 words (line 1), word 4 characters (line 1): Oslo\n"
    )
    assert err == ""


def test_several_files(files, capsys):
    assert main(["check", *files]) == 0
    out = capsys.readouterr().out
    assert f"1 (50.0 %) are in {files[0]}: line 1 (there line 4)" in out
    assert "new labels  B-PER 1 (line 1), B-ORG 1 (line 3)" in out
    assert "new words   1 of 2 types (50.0 %), 1 of 2 tokens (50.0 %)" in out


def test_the_first_five_or_all(tmp_path, capsys):
    path = tmp_path / "train"
    path.write_text("Oslo B-LOC\n\n" * 8 + "Bo I-PER\n\n" * 7)
    assert main(["check", str(path)]) == 0
    few = capsys.readouterr().out
    assert few.count(f"{path}:") == 5 and "... and 2 more (--all)" in few
    assert main(["check", "--all", str(path)]) == 0
    every = capsys.readouterr().out
    assert every.count("I-PER at the start") == 7 and every.count(": as line 1\n") == 7


def test_keys_and_vectors(tmp_path, capsys):
    path = tmp_path / "train"
    path.write_text("# one\nOslo NNP B_LOC\n")
    (tmp_path / "vectors").write_text("oslo 1 2\nBo 1 2\n")
    keys = ["--columns", "word,[POS],label", "--comment_prefix", "#", "--label_delimiter", "_"]
    vectors = ["--word_emb_dir", str(tmp_path / "vectors")]
    assert main(["check", str(path), *keys, *vectors]) == 0
    out = capsys.readouterr().out
    assert "entities    1: LOC 1" in out
    assert "found lower-cased: 1 (100.0 %) types, 1 (100.0 %) tokens" in out


def test_labels_known_in_part(tmp_path, capsys):
    path = tmp_path / "train"
    path.write_text("Anna B-PER\nLind ?\n\nleft O\nOslo B-LOC|B-ORG\n\nBo B-PER\n")
    assert main(["check", str(path), "--partial_labels", "sets"]) == 0
    out, err = capsys.readouterr()
    assert "  partial     2 labels known in part, in 2 sentences\n" in out and err == ""


def test_the_files_and_keys_of_a_config(files, tmp_path, capsys):
    config = tmp_path / "train.config"
    lines = [
        "status=train",
        f"train_dir={SAMPLE / 'train.cappos.bioes'}",
        f"dev_dir={SAMPLE / 'dev.cappos.bioes'}",
        "model_dir=nowhere",
        f"word_emb_dir={SAMPLE / 'sample.word.emb'}",
        "columns=word,[Cap],[POS],label",
    ]
    config.write_text("\n".join(lines))
    assert main(["check", "--config", str(config)]) == 0
    out = capsys.readouterr().out
    assert "sentences   600, " in out and "sentences   150, " in out
    assert out.count("columns     word,[Cap],[POS],label (spaces)\n") == 2
    assert out.count("found exactly") == 2
    # files on the command line go before those of the config, and so do keys
    columns = ["--columns", "word,label", "--word_emb_dir", ""]
    assert main(["check", "--config", str(config), *columns, *files]) == 0
    out = capsys.readouterr().out
    assert files[0] in out and str(SAMPLE) not in out


def test_standard_input(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TRAIN.encode())))
    assert main(["check", "-"]) == 0
    assert "<stdin>:4: I-PER at the start" in capsys.readouterr().out


class TestWhatCannotBeRead:
    def test_the_others_are_reported_all_the_same(self, files, tmp_path, capsys):
        bad = tmp_path / "bad"
        bad.write_text("Oslo B-LOC\nis\n")
        assert main(["check", files[0], str(bad), files[1], "nothing"]) == 2
        out, err = capsys.readouterr()
        assert files[0] in out and files[1] in out
        assert [line[:40] for line in err.splitlines()] == [
            f"ncrf: {bad}:2: 1 column found, 'is', expected"[:40],
            "ncrf: nothing: no such file (check the p",
        ]

    def test_a_scheme_that_training_would_refuse(self, tmp_path, capsys):
        path = tmp_path / "odd"
        path.write_text("a B-X\n\nb L-X\nc E-X\n")
        assert main(["check", str(path)]) == 2
        out, err = capsys.readouterr()
        assert "scheme      cannot be told" in out and f"ncrf: {path}:1: no label" in err

    def test_only_the_first_file_needs_labels(self, files, tmp_path, capsys):
        raw = tmp_path / "raw"
        raw.write_text("Oslo\n")
        assert main(["check", files[0], str(raw)]) == 0
        assert "scheme      no labels" in capsys.readouterr().out
        assert main(["check", str(raw)]) == 2

    def test_vectors(self, files, capsys):
        assert main(["check", files[0], "--word_emb_dir", "nothing"]) == 2
        out, err = capsys.readouterr()
        assert files[0] in out and err.startswith("ncrf: nothing: no such file")

    def test_no_file_at_all(self, tmp_path, capsys):
        assert main(["check"]) == 2
        assert "no file to check" in capsys.readouterr().err
        (tmp_path / "c").write_text("dev_dir=x\nmodel_dir=y\n")
        assert main(["check", "--config", str(tmp_path / "c")]) == 2
        assert main(["check", "--config", str(tmp_path / "nothing")]) == 2
