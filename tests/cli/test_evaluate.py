"""``ncrf evaluate``: its options, and files that decoding wrote."""

import io

import pytest

from ncrf.cli import main
from tests.conftest import SAMPLE


@pytest.fixture
def files(tmp_path):
    gold, predicted = tmp_path / "gold", tmp_path / "predicted"
    gold.write_text("1 Anna B_PER\n2 left O\n")
    predicted.write_text("Anna B_PER\nleft O\n")
    return str(gold), str(predicted)


class TestColumnsThatBeginWithAHyphen:
    def test_evaluate(self, files, capsys):
        keys = ["--label_delimiter", "_", "--columns", "-,word,label"]
        for command in ([*keys, *files], [*files, *keys], [files[0], *keys, files[1]]):
            assert main(["evaluate", *command]) == 0
            assert "FB1: 100.00" in capsys.readouterr().out
        assert main(["evaluate", *files, *keys[:2], "--columns=-,word,label"]) == 0

    def test_check(self, files, capsys):
        assert main(["check", "--columns", "-,word,-", files[0]]) == 2  # the first needs labels
        keys = ["--label_delimiter", "_", "--columns", "- , word,label"]
        assert main(["check", *keys, files[0]]) == 0
        assert "columns     -,word,label (spaces)\n" in capsys.readouterr().out

    def test_convert(self, files, capfd):
        keys = ["--to", "BIOES", "--label_delimiter", "_", "--columns", "-,word,label"]
        assert main(["convert", *keys, files[0], "-"]) == 0
        assert capfd.readouterr().out == "1 Anna S_PER\n2 left O\n"

    def test_an_option_is_no_value(self, files, capsys):
        with pytest.raises(SystemExit) as ended:
            main(["evaluate", *files, "--columns", "--label_delimiter", "_"])
        assert ended.value.code == 2 and "--columns" in capsys.readouterr().err


def test_conllu_and_classification(tmp_path, capsys):
    path = tmp_path / "gold"
    path.write_text("1\tBo\tBo\tPROPN\tN\t_\t0\troot\t_\t_\n\n")
    keys = ["--file_format", "conllu", "--label_column", "xpos"]
    assert main(["evaluate", str(path), str(path), *keys]) == 0
    out = capsys.readouterr().out
    assert out.startswith("processed 1 ") and " N: precision: 100.00%" in out
    path.write_text("so so ||| neutral\nfine ||| good\n")
    assert main(["evaluate", str(path), str(path), "--sentence_classification", "true"]) == 0
    assert capsys.readouterr().out.startswith("processed 2 sentences; correct: 2.\n")


def test_a_single_file(tmp_path, capsys, monkeypatch):
    path = tmp_path / "both"
    path.write_text("Anna B_PER B_PER\nleft O B_PER\n")
    keys = ["--label_delimiter", "_"]
    for command in ([str(path), *keys], [*keys, str(path)]):
        assert main(["evaluate", *command]) == 0
        assert "precision:  50.00%; recall: 100.00%" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    assert main(["evaluate", "-", *keys]) == 0
    assert "precision:  50.00%; recall: 100.00%" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["evaluate", str(path), "--oracle"])
    assert "--oracle needs a second file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["--file_format", "conllx"], "file_format"),
        (["--column_separator", "comma"], "column_separator"),
        (["--oracle"], "not n-best output"),
    ],
)
def test_mistakes_are_one_line(keys, message, capsys):
    path = str(SAMPLE / "test.bioes")
    assert main(["evaluate", path, path, *keys]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and message in err


def test_help_says_what_may_be_scored(capsys):
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    for text in (
        "--oracle",
        "--comment_prefix",
        'N-best output (a line "# p1 p2 ..."',
        "marginals",
    ):
        assert text in out


def test_what_decoding_writes(trained, tmp_path, capsys):
    """Alone, n-best and with marginals the same is scored; the oracle finds more."""
    gold, out = str(SAMPLE / "test.bioes"), str(tmp_path / "out")
    decode = ["decode", "--raw", gold, "--loadmodel", str(trained), "--threads", "1"]
    printed = []
    for keys in ([], ["--nbest", "5"], ["--marginals"], ["--nbest", "5", "--marginals"]):
        assert main([*decode, "--output", out, *keys]) == 0
        capsys.readouterr()
        assert main(["evaluate", gold, out]) == 0
        printed.append(capsys.readouterr().out)
    assert printed == printed[:1] * 4
    assert main(["evaluate", gold, out, "--oracle"]) == 0
    best, oracle = (
        float(x.split("FB1:")[1].split()[0]) for x in (printed[0], capsys.readouterr().out)
    )
    assert best < oracle
