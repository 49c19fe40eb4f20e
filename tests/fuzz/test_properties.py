"""Any bytes at all, and what is left of good input after some changes: done, or one line.

``NCRF_FUZZ=1000`` tries so many examples for each target; ``scripts/fuzz.py`` goes on for as long
as it is told to.
"""

import os
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ncrf.config import all_keys
from tests.fuzz.attempts import Targets
from tests.fuzz.mutations import PIECES, combination, mutate, seeds

EXAMPLES = int(os.environ.get("NCRF_FUZZ", "4"))
TARGETS = [
    "config",
    "yaml",
    "check",
    "convert",
    "evaluate",
    "decode",
    "decode_lines",
    "packed",
    "packed_well",
    "conllu",
    "classification",
    "nbest",
    "vectors",
    "packed_vectors",
    "model_config",
    "model_alphabets",
    "model_weights",
    "model_history",
    "model_vectors",
    "model_manifest",
]
few = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def targets(tmp_path_factory, trained):
    return Targets(tmp_path_factory.mktemp("fuzz"), trained)


@pytest.mark.parametrize("target", TARGETS)
@few
@given(data=st.data())
def test_any_bytes(targets, target, data):
    pieces = st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=8)), max_size=12)
    targets.try_one(target, b"".join(data.draw(pieces)))


@pytest.mark.parametrize("target", [*TARGETS, "train"])
@few
@given(number=st.integers(0, 2**32), data=st.data())
def test_good_input_with_changes(targets, target, number, data):
    seed = data.draw(st.sampled_from(seeds(targets)[target]))
    targets.try_one(target, mutate(seed, random.Random(number)))


NAMES = [spelling for key in all_keys() for spelling in (key.name, *key.aliases)]
VALUES = st.one_of(
    st.sampled_from([choice for key in all_keys() for choice in key.choices]),
    st.text(max_size=10).map(lambda text: text.replace("\n", " ")),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(["", "None", "True", "no", "[POS] emb_size=3", "word,label", "a,b", "[x]"]),
)
LINES = st.lists(
    st.tuples(st.one_of(st.sampled_from(NAMES), st.text(max_size=8)), VALUES), max_size=15
)


@pytest.mark.parametrize("target", ["config", "yaml"])
@settings(few, max_examples=4 * EXAMPLES)
@given(lines=LINES)
def test_keys_with_any_values(targets, target, lines):
    between = {"config": "=", "yaml": ": "}[target]
    text = "".join(f"{name}{between}{value}\n" for name, value in lines if name != "plugins")
    targets.try_one(target, text.encode("utf-8", "surrogatepass"))


@few
@given(number=st.integers(0, 2**32))
def test_keys_that_are_allowed_train_or_are_refused(targets, number):
    targets.try_one("combine", combination(random.Random(number)))
