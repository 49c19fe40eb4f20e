"""The command line: what it prints, where, and its exit status."""

import io
import json
import subprocess
import sys

import pytest

from ncrf.cli import main
from tests.conftest import ROOT, SAMPLE, small_keys


def run(*arguments, capsys):
    """Exit status, standard output, standard error."""
    arguments = [str(argument) for argument in arguments]
    if arguments and arguments[0] in ("decode", "--status"):
        arguments += ["--threads", "1"]
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def blocks(text):
    return [block.split("\n") for block in text.rstrip("\n").split("\n\n")]


def write_config(path, keys):
    path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    return path


@pytest.fixture
def decode_keys(trained, tmp_path):
    return {
        "status": "decode",
        "threads": 1,
        "raw_dir": SAMPLE / "raw.bioes",
        "load_model_dir": trained,
        "decode_dir": tmp_path / "out" / "raw.out",
    }


class TestTrain:
    def test_a_config_file_trains(self, tmp_path, capsys):
        keys = small_keys(tmp_path / "model", iteration=1, lstm_layer=1, cnn_layer=3)
        config = write_config(tmp_path / "train.config", keys)
        status, out, err = run("--config", config, "--test", SAMPLE / "test.bioes", capsys=capsys)
        assert (status, out) == (0, "")
        assert "label scheme: BIOES (detected)" in err
        assert "idle" in err and "cnn_layer" in err
        assert "test:\nprocessed" in err
        assert "best" in err
        assert (tmp_path / "model" / "model.safetensors").exists()

    def test_all_ways_to_say_it(self, tmp_path, capsys):
        keys = small_keys(tmp_path / "model", iteration=1, overwrite=True)
        config = write_config(tmp_path / "train.config", keys)
        for command in (["run", config], ["train", config], [f"--config={config}"]):
            assert run(*command, capsys=capsys)[0] == 0


class TestDecode:
    def test_best_labels(self, decode_keys, tmp_path, capsys):
        config = write_config(tmp_path / "decode.config", decode_keys)
        assert run("--config", config, capsys=capsys)[0] == 0
        written = (tmp_path / "out" / "raw.out").read_text()
        given = (SAMPLE / "raw.bioes").read_text()
        assert written.endswith("\n\n")
        assert [[row.split(" ")[0] for row in block] for block in blocks(written)] == [
            [row.split(" ")[0] for row in block] for block in blocks(given)
        ]
        assert all(len(row.split(" ")) == 2 for block in blocks(written) for row in block)

    def test_nbest_has_a_header_and_a_column_each(self, decode_keys, tmp_path, capsys):
        config = write_config(tmp_path / "decode.config", decode_keys)
        assert run("--config", config, "--nbest", 5, capsys=capsys)[0] == 0
        for block in blocks((tmp_path / "out" / "raw.out").read_text()):
            mark, *probabilities = block[0].split(" ")
            values = list(map(float, probabilities))
            assert mark == "#" and len(values) == 5
            assert values == sorted(values, reverse=True) and sum(values) <= 1.001
            assert all(len(row.split(" ")) == 6 for row in block[1:])
            columns = list(zip(*(row.split(" ")[1:] for row in block[1:]), strict=True))
            assert len(set(columns)) == 5

    def test_marginals_are_a_column_more(self, decode_keys, tmp_path, capsys):
        config = write_config(tmp_path / "decode.config", decode_keys)
        assert run("--config", config, "--marginals", "true", capsys=capsys)[0] == 0
        for block in blocks((tmp_path / "out" / "raw.out").read_text()):
            assert all(0 <= float(row.split(" ")[2]) <= 1 for row in block)

    def test_json(self, decode_keys, tmp_path, capsys):
        config = write_config(tmp_path / "decode.config", decode_keys)
        arguments = ("--decode_format", "json", "--nbest", 2)
        assert run("--config", config, *arguments, capsys=capsys)[0] == 0
        lines = (tmp_path / "out" / "raw.out").read_text().splitlines()
        assert len(lines) == len(blocks((SAMPLE / "raw.bioes").read_text()))
        for line in lines:
            value = json.loads(line)
            assert set(value) == {"tokens", "labels", "probability", "spans", "nbest"}
            assert value["nbest"][0] == {k: value[k] for k in ("labels", "probability")}
            for span in value["spans"]:
                words = value["tokens"][span["start"] : span["end"]]
                assert span["text"] == " ".join(words)
                assert value["probability"] - 1e-6 <= span["probability"] <= 1 + 1e-6

    def test_from_standard_input_to_standard_output(self, trained, capsys, monkeypatch):
        text = "Anna\nleft\n\nJordan\n"
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        status, out, _ = run(
            "--status", "decode", "--raw", "-", "--loadmodel", trained, capsys=capsys
        )
        assert status == 0
        assert [[row.split(" ")[0] for row in block] for block in blocks(out)] == [
            ["Anna", "left"],
            ["Jordan"],
        ]

    def test_tabs_stay_tabs_and_documents_stay_apart(self, trained, tmp_path, capsys):
        raw = tmp_path / "raw.tsv"
        raw.write_text("-DOCSTART-\tO\n\nNew York\tO\nis\tO\n\n")
        arguments = ("decode", "--raw", raw, "--loadmodel", trained)
        _, out, _ = run(*arguments, capsys=capsys)
        first, second = blocks(out)
        assert first == ["-DOCSTART-\tO"]
        assert [row.split("\t")[0] for row in second] == ["New York", "is"]
        _, out, _ = run(*arguments, "--nbest", 2, capsys=capsys)
        assert blocks(out)[0] == ["# 1", "-DOCSTART-\tO"]

    def test_the_legacy_name_of_a_model(self, decode_keys, trained, tmp_path, capsys):
        keys = {k: v for k, v in decode_keys.items() if k != "load_model_dir"}
        keys |= {"dset_dir": f"{trained}.dset", "load_model_dir": f"{trained}.0.model"}
        status, _, err = run("--config", write_config(tmp_path / "d", keys), capsys=capsys)
        assert status == 0 and str(trained) in err

    def test_output_over_the_input_is_refused(self, decode_keys, tmp_path, capsys):
        raw = tmp_path / "raw"
        raw.write_text("Anna O\n")
        keys = {**decode_keys, "raw_dir": raw, "decode_dir": raw}
        status, _, err = run("--config", write_config(tmp_path / "d", keys), capsys=capsys)
        assert status == 2 and "input" in err.splitlines()[-1]
        assert raw.read_text() == "Anna O\n"

    @pytest.mark.parametrize("place", ["model.safetensors", "new.out"])
    def test_output_into_the_model_folder_is_refused(self, decode_keys, tmp_path, capsys, place):
        before = (decode_keys["load_model_dir"] / "model.safetensors").read_bytes()
        keys = {**decode_keys, "decode_dir": decode_keys["load_model_dir"] / place}
        status, _, err = run("--config", write_config(tmp_path / "d", keys), capsys=capsys)
        assert status == 2 and "inside the model folder" in err.splitlines()[-1]
        assert (decode_keys["load_model_dir"] / "model.safetensors").read_bytes() == before

    def test_a_failed_decode_leaves_the_old_output(self, decode_keys, tmp_path, capsys):
        raw, out = tmp_path / "raw", tmp_path / "out"
        raw.write_text("Anna O\n\nBo\n")
        out.write_text("kept")
        keys = {**decode_keys, "raw_dir": raw, "decode_dir": out}
        status, _, err = run("--config", write_config(tmp_path / "d", keys), capsys=capsys)
        assert status == 2 and f"{raw}:3" in err.splitlines()[-1]
        assert out.read_text() == "kept"
        assert sorted(p.name for p in tmp_path.iterdir()) == ["d", "out", "raw"]


class TestEvaluate:
    def test_a_file_against_itself(self, capsys):
        status, out, _ = run(
            "evaluate", SAMPLE / "test.bioes", SAMPLE / "test.bioes", capsys=capsys
        )
        assert status == 0
        assert "accuracy: 100.00%; precision: 100.00%; recall: 100.00%; FB1: 100.00" in out

    def test_decoded_output_scores_as_evaluate_does(self, tagger, trained, tmp_path, capsys):
        out = tmp_path / "out"
        arguments = ("decode", "--raw", SAMPLE / "test.bioes", "--loadmodel", trained)
        assert run(*arguments, "--output", out, capsys=capsys)[0] == 0
        _, printed, _ = run("evaluate", SAMPLE / "test.bioes", out, capsys=capsys)
        f1 = tagger.evaluate(SAMPLE / "test.bioes").f1
        assert f"FB1: {100 * f1:6.2f}" in printed.splitlines()[1]

    def test_columns_lay_out_the_gold_file_alone(self, tmp_path, capsys):
        gold, predicted = tmp_path / "gold", tmp_path / "predicted"
        gold.write_text("Anna N B-PER\nleft V O\n")
        predicted.write_text("Anna B-PER\nleft O\n")
        status, out, _ = run(
            "evaluate", gold, predicted, "--columns", "word,-,label", capsys=capsys
        )
        assert status == 0 and "FB1: 100.00" in out

    def test_words_that_differ_are_an_error_with_the_line(self, tmp_path, capsys):
        gold, predicted = tmp_path / "gold", tmp_path / "predicted"
        gold.write_text("Anna B-PER\nleft O\n")
        predicted.write_text("Anna B-PER\nwent O\n")
        status, _, err = run("evaluate", gold, predicted, capsys=capsys)
        assert status == 2 and f"{predicted}:2" in err


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--config", "nothing.config"], "nothing.config"),
            (["fly"], "fly: no such command"),
            (["--itteration", "5"], "iteration"),
            (["train"], "train_dir"),
            (["evaluate", "nothing", "nothing"], "nothing"),
        ],
    )
    def test_one_line_and_status_2(self, arguments, message, capsys):
        status, out, err = run(*arguments, capsys=capsys)
        assert (status, out) == (2, "")
        assert message in err.splitlines()[-1] and "Traceback" not in err

    def test_interrupted(self, monkeypatch, capsys):
        def interrupt(arguments):
            raise KeyboardInterrupt

        monkeypatch.setattr("ncrf.cli._dispatch", interrupt)
        assert run("keys", capsys=capsys)[0] == 130


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("run", ["--config CONFIG", "status"]),
        ("train", ["ncrf train CONFIG", "train_dir", "model_dir"]),
        ("decode", ["ncrf decode CONFIG", "load_model_dir", "raw_dir", "nbest"]),
    ],
)
def test_help_of_a_command_that_takes_keys(command, needed, capsys):
    """Its use, the keys that it needs, and where all of them are."""
    status, out, err = run(command, "--help", capsys=capsys)
    assert status == 0 and not err
    assert all(text in out for text in [*needed, "ncrf keys"])
    assert ("nbest" in out) == (command == "decode")


def test_a_config_without_a_command_is_told_what_to_say(tmp_path, capsys):
    config = tmp_path / "my.config"
    config.write_text("")
    status, _, err = run(config, capsys=capsys)
    assert status == 2 and f"ncrf run {config}" in err


def test_help_and_version(capsys):
    status, out, _ = run("--help", capsys=capsys)
    assert status == 0 and "ncrf decode" in out
    assert run("--version", capsys=capsys)[1].startswith("ncrf ")
    assert run(capsys=capsys)[0] == 2


def test_keys_lists_every_key_and_finds_some(capsys):
    _, out, _ = run("keys", capsys=capsys)
    assert "learning_rate" in out and "char_seq_feature" in out
    _, out, _ = run("keys", "rate", capsys=capsys)
    assert "learning_rate" in out and "char_seq_feature" not in out


def test_help_does_not_import_torch():
    code = "import sys, ncrf.cli; ncrf.cli.main(['keys']); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0


def test_training_does_not_import_the_compiler_of_torch(tmp_path):
    """Which takes a second, and which a default initialization on the meta device asks for."""
    code = "import sys, ncrf.cli; status = ncrf.cli.main(sys.argv[1:]); "
    code += "sys.exit(status or 'torch._dynamo' in sys.modules)"
    keys = {"train_dir": SAMPLE / "dev.bioes", "model_dir": tmp_path / "model", "iteration": 1}
    options = [part for name, value in keys.items() for part in (f"--{name}", str(value))]
    command = [sys.executable, "-c", code, "train", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
