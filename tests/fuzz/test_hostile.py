"""Inputs that somebody thought of: each is refused in one line, or works, in time and memory."""

import pytest

from tests.fuzz.attempts import Targets
from tests.fuzz.mutations import hostile, seeds


@pytest.fixture(scope="module")
def targets(tmp_path_factory, trained):
    return Targets(tmp_path_factory.mktemp("fuzz"), trained)


def cases():
    """Some of what is given to many commands is tried at length, with a few among the rest."""
    often = ("train", "convert", "evaluate", "nbest", "sizes", "conllu")
    for number, (target, what, data) in enumerate(hostile()):
        marks = [pytest.mark.slow] if target in often and number % 5 else []
        yield pytest.param(target, data, id=f"{target}: {what[:50]}", marks=marks)


@pytest.mark.parametrize(("target", "data"), list(cases()))
def test_hostile(targets, target, data):
    targets.try_one(target, data)


def test_what_is_right_works(targets):
    """The seeds of the fuzzer; a config of files that are not there can do no more than say so."""
    for target, inputs in seeds(targets).items():
        for data in inputs:
            refused = target in ("config", "yaml")
            if target == "convert" and data == b"Anna N\nmet V\n\nBo N\n":
                refused = True  # plain labels
            if target in ("decode", "evaluate"):
                continue
            assert targets.try_one(target, data) == (2 if refused else 0), (target, data)
