"""``ncrf convert``: where it reads and writes, and its exit status."""

import io

import pytest

from ncrf.cli import main

TEXT = "Oslo NNP B-LOC\nCity NNP I-LOC\n\nBo NNP I-PER\n"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in"
    path.write_text(TEXT)
    return str(path)


def test_a_file_into_a_file(source, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main(["convert", "--to", "bioes", source, out, "--columns", "word,-,label"]) == 0
    with open(out) as file:
        assert file.read() == "Oslo NNP B-LOC\nCity NNP E-LOC\n\nBo NNP S-PER\n"
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "label scheme IOB2 (detected)" in printed.err
    assert "1 sentence, 1 place" in printed.err and "line 4" in printed.err
    assert "2 labels changed from IOB2 to BIOES" in printed.err


def test_standard_input_to_standard_output(monkeypatch, capfdbinary):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Oslo B_LOC\r\n")))
    arguments = ["convert", "-", "-", "--to", "BILOU", "--label_delimiter", "_"]
    assert main([*arguments, "--input_scheme", "iob2", "--column_separator", "space"]) == 0
    assert capfdbinary.readouterr().out == b"Oslo U_LOC\r\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "BIOES", "nothing", "-"], "nothing: no such file"),
        (["--to", "BIOUX", "{in}", "-"], "unknown label scheme 'BIOUX'"),
        (["--to", "BIO", "{in}", "{in}"], "is the input itself"),
        (["--to", "BIO", "{in}", "-"], "columns=word,-,label"),
        (["--to", "BIO", "{in}", "-", "--input_scheme", "BIX"], "input_scheme='BIX'"),
        (["--to", "BIO", "{in}", "-", "--columns", "word,tag"], "columns='word,tag'"),
        (["--to", "BIO", "{in}", "-", "--partial_labels", "some"], "partial_labels='some'"),
    ],
)
def test_mistakes_are_one_line_and_status_2(arguments, message, source, capsys):
    assert main(["convert", *(a.format(**{"in": source}) for a in arguments)]) == 2
    printed = capsys.readouterr()
    assert message in printed.err.splitlines()[-1] and printed.out == ""


def test_labels_known_in_part(tmp_path, capfd):
    path = tmp_path / "in"
    path.write_text("Anna B-PER\nLind ?\n\nleft O\nOslo B-LOC|B-ORG\n\nBo B-PER\n")
    keys = ["--partial_labels", "sets"]
    assert main(["convert", "--to", "BIO", str(path), "-", *keys]) == 0
    assert capfd.readouterr().out == path.read_text()
    assert main(["convert", "--to", "BIOES", str(path), str(tmp_path / "out"), *keys]) == 2
    error = capfd.readouterr().err.splitlines()[-1]
    assert error.startswith(f"ncrf: {path}:2: label '?' is known in part") and "--to IOB2" in error


def test_a_missing_argument_ends_with_2(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["convert", "--to", "BIO", "in"])
    assert ended.value.code == 2
    assert "OUT" in capsys.readouterr().err


def test_help_names_the_keys_of_a_config(capsys):
    with pytest.raises(SystemExit):
        main(["convert", "--help"])
    assert "--comment_prefix" in capsys.readouterr().out
