"""``ncrf info``: what it prints, and its exit status."""

import pytest

from ncrf.cli import main


def test_a_model(trained, capsys):
    assert main(["info", str(trained)]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == f"model {trained}" and err == ""
    assert "  scheme        BIOES" in lines
    assert "                sentence: LSTM, 20 wide, 1 layer, both directions" in lines
    assert "  epochs        5" in lines
    assert any(line.startswith("                sentences 600, tokens ") for line in lines)
    assert lines[-1].endswith("model.safetensors")


def test_the_legacy_name_of_a_model(trained, capsys):
    assert main(["info", f"{trained}.0.model"]) == 0
    assert capsys.readouterr().out.startswith(f"model {trained}\n")


@pytest.mark.parametrize("arguments", [["nothing"], ["--plugins", "no_such_module", "x"]])
def test_mistakes(arguments, capsys):
    assert main(["info", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1
