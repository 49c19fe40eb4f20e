"""What answers at once imports neither torch nor numpy."""

import gc
import json
import subprocess
import sys

import pytest

from ncrf.cli.run import imports
from tests.conftest import ROOT, SAMPLE

PROGRAM = """
import json, sys
from ncrf.cli import main
try:
    status = main(sys.argv[1:])
except SystemExit as end:  # argparse after --help
    status = end.code
heavy = sorted({name.partition(".")[0] for name in sys.modules} & {"torch", "numpy", "gensim"})
print(json.dumps([status, heavy]), file=sys.stderr)
"""
TRAIN = ["train", "--train_dir", str(SAMPLE / "train.bioes"), "--model_dir", "nowhere"]
COMMANDS = [
    (["keys"], 0),
    (["keys", "word_emb_dir"], 0),
    (["--help"], 0),
    (["--version"], 0),
    *((["run", "--help"], 0), (["train", "--help"], 0), (["decode", "--help"], 0)),
    *((["evaluate", "--help"], 0), (["convert", "--help"], 0), (["check", "--help"], 0)),
    *((["info", "--help"], 0), (["keys", "--help"], 0)),
    *((["sweep", "--help"], 0), (["compare", "--help"], 0)),
    *((["sweep"], 2), (["sweep", "no/such.config"], 2), (["sweep", "a", "--jobs", "none"], 2)),
    (["learn"], 2),
    (["train", "no/such.config"], 2),
    (["train", str(ROOT / "README.md")], 2),
    ([*TRAIN, "--hidden_dims", "100"], 2),
    ([*TRAIN, "--hidden_dim", "a hundred"], 2),
    ([*TRAIN, "--hidden_dim", "101"], 2),
    ([*TRAIN, "--dev_dir", "no/such.file"], 2),
    ([*TRAIN, "--word_emb_dir", "no/such.file"], 2),
    (["decode", "--raw_dir", str(SAMPLE / "test.bioes"), "--load_model_dir", "no/model"], 2),
]


@pytest.mark.parametrize(
    ("arguments", "status"),
    COMMANDS,
    ids=lambda x: " ".join(map(str, x)) if isinstance(x, list) else None,
)
def test_without_torch_and_numpy(arguments, status):
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert json.loads(done.stderr.splitlines()[-1]) == [status, []], done.stderr


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        (["train", *TRAIN[1:3], "--model_dir", "{model}"], "holds a finished model"),
        (["train", *TRAIN[1:3], "--model_dir", "{model}/config.yaml"], "not a model folder"),
        (
            ["decode", "--raw", TRAIN[2], "--loadmodel", "{model}", "--hidden_dim", "8"],
            "hidden_dim=8",
        ),
    ],
)
def test_what_the_model_folder_rules_out_is_said_without_torch(trained, keys, what):
    arguments = [word.format(model=trained) for word in keys]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    *_, said, last = done.stderr.splitlines()
    status, heavy = json.loads(last)
    assert (status, "torch" in heavy) == (2, False) and what in said


def test_imports_leave_the_garbage_collection_as_it_was():
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            with imports():
                assert not gc.isenabled()
            assert gc.isenabled() == enabled
        finally:
            gc.enable()
