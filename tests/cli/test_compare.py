"""``ncrf compare``: files, models, rows of a sweep, and mistakes."""

import json
import shutil
import subprocess
import sys

import pytest

from ncrf.cli import main
from ncrf.decode.systems import outputs_of
from ncrf.errors import InputError
from tests.cli.test_start_up import PROGRAM
from tests.conftest import SAMPLE

GOLD = SAMPLE / "test.bioes"


def with_errors(path, every, target):
    """A copy of a labelled file in which each entity of every so many sentences is missed."""
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    for i in range(0, len(blocks), every):
        blocks[i] = "\n".join(f"{row.split(' ')[0]} O" for row in blocks[i].split("\n"))
    target.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    return str(target)


@pytest.fixture
def files(tmp_path):
    """Two predicted files; the second one is better."""
    names = ("a.out", "b.out")
    return [with_errors(GOLD, n, tmp_path / name) for n, name in zip((2, 5), names, strict=True)]


def found(capsys, *arguments):
    assert main(["compare", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_scores_are_those_of_evaluate(files, capsys):
    result = found(capsys, GOLD, *files)
    for path, scores in zip(files, (result["scores_a"], result["scores_b"]), strict=True):
        assert main(["evaluate", str(GOLD), path]) == 0
        assert f"FB1: {100 * scores[0]:6.2f}" in capsys.readouterr().out.splitlines()[1]
    assert result["p_sentences"] == 1 / 10_001 and result["permutation"] is None
    low, high = result["interval"]
    assert 0 < low < result["difference"] < high


def test_files_without_a_sentence(tmp_path, capsys):
    empty = tmp_path / "empty"
    empty.touch()
    assert main(["compare", *[str(empty)] * 3]) == 2
    assert capsys.readouterr().err == f"ncrf: {empty}: holds no sentence to compare\n"


def test_what_is_printed(files, capsys):
    assert main(["compare", str(GOLD), *files]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "150 sentences, 350 phrases" and len(lines) == 6
    assert lines[1].startswith("A: FB1 ") and lines[1].endswith(files[0])
    assert lines[5] == "p = 0.0001: approximate randomization over sentences (10,000 shuffles)"


def test_a_model_is_scored_as_in_its_training(trained, tmp_path, capsys):
    """A model, a row of a sweep with copies of it, and a pattern are the same system."""
    history = [json.loads(x) for x in (trained / "history.jsonl").read_text().splitlines()]
    expected = max(epoch["dev"]["f1"] for epoch in history)  # its dev corpus is this gold file
    for seed in (1, 10):
        shutil.copytree(trained, tmp_path / f"dim=5,seed={seed}")
    row = found(capsys, GOLD, tmp_path / "dim=5", trained)
    assert row["scores_a"] == [expected] * 2 and row["scores_b"] == [expected]
    assert row["p_sentences"] == 1.0 and row["difference"] == 0.0


def test_what_a_name_stands_for(trained, tmp_path):
    for seed in (2, 10, 1):
        (tmp_path / f"x[1],seed={seed}").symlink_to(trained)
        (tmp_path / f"seed={seed}").symlink_to(trained)
    (tmp_path / "x[1],seed=1.log").write_text("")
    names = [place.name for place in outputs_of(str(tmp_path / "x[1]"))]
    assert names == ["x[1],seed=1", "x[1],seed=2", "x[1],seed=10"]
    for name in (str(tmp_path), f"{tmp_path}/"):
        assert [place.name for place in outputs_of(name)] == ["seed=1", "seed=2", "seed=10"]
    assert outputs_of(str(tmp_path / "seed=2")) == [tmp_path / "seed=2"]
    pattern = [place.name for place in outputs_of(str(tmp_path / "seed=?"))]
    assert pattern == ["seed=1", "seed=2"]
    for name in ("y", "y*", "x"):
        with pytest.raises(InputError, match="neither a predicted file nor a model"):
            outputs_of(str(tmp_path / name))


def test_an_unfinished_seed_is_left_out(trained, tmp_path, caplog):
    for seed in (1, 2):
        shutil.copytree(trained, tmp_path / f"seed={seed}")
    (tmp_path / "seed=1" / "training").mkdir()
    assert outputs_of(str(tmp_path)) == [tmp_path / "seed=2"]
    assert "its training is unfinished" in caplog.text


def test_files_of_other_sentences_are_named_with_the_line(files, tmp_path, capsys):
    short = tmp_path / "short.out"
    short.write_text("\n\n".join(GOLD.read_text().split("\n\n")[:3]) + "\n\n")
    assert main(["compare", str(GOLD), files[0], str(short)]) == 2
    line = len(short.read_text().splitlines()) + 1
    assert f"{GOLD}:{line}: a gold sentence that the predicted file" in capsys.readouterr().err
    text = (tmp_path / "b.out").read_text()
    (tmp_path / "b.out").write_text(text.replace("\n\n", "\nAnd O\n\n", 1))
    assert main(["compare", str(GOLD), *files]) == 2
    line = text.split("\n\n")[0].count("\n") + 2
    assert f"b.out:{line}: 'And' where " in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--shuffles", "0"], ["--seed", "-1"]])
def test_options_out_of_range(option, capsys):
    assert main(["compare", "a", "b", "c", *option]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_files_need_no_torch(files):
    command = [sys.executable, "-c", PROGRAM, "compare", str(GOLD), *files]
    done = subprocess.run(command, capture_output=True, text=True)
    status, heavy = json.loads(done.stderr.splitlines()[-1])
    assert status == 0 and "torch" not in heavy
