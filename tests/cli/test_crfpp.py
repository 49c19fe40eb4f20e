"""``ncrf learn`` and ``ncrf test``: the files of CRF++, in crf_test's layout to the letter."""

import math

import pytest
import torch

from ncrf import Tagger
from ncrf.cli import main

# Scores are set by hand: P(A | a) = 3/4 and P(B | b) = 4/5, whatever the neighbours.
TRAIN = "a x A\nb y B\n\na y A\nb x A\n\na x B\nb x B\n\n"
TEMPLATE = "U00:%x[0,0]\nB\n"

BEST = "a\tx\tA\tA\nb\ty\tB\tB\n\na\tx\tB\tA\n\n"
VERBOSE = "# 0.6\na\tx\tA\tA/0.75\nb\ty\tB\tB/0.8\n\n# 0.75\na\tx\tB\tA/0.75\n\n"
ALL = (
    "# 0.6\na\tx\tA\tA/0.75\tA/0.75\tB/0.25\nb\ty\tB\tB/0.8\tA/0.2\tB/0.8\n\n"
    "# 0.75\na\tx\tB\tA/0.75\tA/0.75\tB/0.25\n\n"
)
NBEST = (
    "# 0 0.6\na\tx\tA\tA\nb\ty\tB\tB\n\n"
    "# 1 0.2\na\tx\tA\tB\nb\ty\tB\tB\n\n"
    "# 2 0.15\na\tx\tA\tA\nb\ty\tB\tA\n\n"
    "# 0 0.75\na\tx\tB\tA\n\n"
    "# 1 0.25\na\tx\tB\tB\n\n"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the files, a learned ``model``, and one ``by_hand``."""
    folder = tmp_path_factory.mktemp("crfpp")
    (folder / "train").write_text(TRAIN)
    (folder / "template").write_text(TEMPLATE)
    (folder / "in").write_text("a\tx\tA\nb\ty\tB\n\na\tx\tB\n")
    names = [str(folder / name) for name in ("template", "train", "model")]
    assert main(["learn", "-m", "5", "-p", "1", *names]) == 0
    tagger = Tagger.load(folder / "model")
    labeler, features = tagger.predictor.labeler, tagger.vocabulary.templates
    assert features.index.num_features == 2 * 2 + 2 * 2  # with every label, and every pair
    labels = tagger.vocabulary.labels
    wanted = {("U00:a", "A"): math.log(3), ("U00:b", "B"): math.log(4)}
    attributes, _, of_label = features.index.parts_of(torch.arange(4).numpy())
    texts = features.attributes.unigram_strings(attributes.tolist())
    with torch.no_grad():
        for number, text in enumerate(texts):
            score = wanted.get((text, labels.strings[of_label[number]]), 0.0)
            labeler.templates.state_weights[number] = score
        labeler.inference.crf.transitions.zero_()
    tagger.save(folder / "by_hand")
    return folder


@pytest.mark.parametrize(
    ("options", "golden"),
    [([], BEST), (["-v", "1"], VERBOSE), (["-v2"], ALL), (["-n", "3"], NBEST)],
)
def test_the_layout_of_crf_test(place, capsys, options, golden):
    assert main(["test", "-m", str(place / "by_hand"), *options, str(place / "in")]) == 0
    assert capsys.readouterr().out == golden


def test_labels_may_be_missing(place, capsys):
    (place / "raw").write_text("a x\nb y\n")
    assert main(["test", "-m", str(place / "by_hand"), str(place / "raw")]) == 0
    assert capsys.readouterr().out == "a\tx\tA\nb\ty\tB\n\n"


def test_two_files_into_one(place):
    files = [str(place / "in")] * 2
    assert main(["test", "-m", str(place / "by_hand"), "-o", str(place / "out"), *files]) == 0
    assert (place / "out").read_text() == BEST * 2


def test_a_learned_model_labels_its_training_file(place, capsys):
    assert main(["test", "-m", str(place / "model"), str(place / "train")]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:3] for row in rows if len(row) > 1] == [
        line.split() for line in TRAIN.splitlines() if line
    ]
    assert {row[3] for row in rows if len(row) > 1} <= {"A", "B"}


def test_weights(place, capsys):
    assert main(["weights", str(place / "by_hand"), "--top", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "transitions, from the label of the row to that of the column"
    assert "state features of A: 2" in lines and "   +1.0986  U00:a" in lines
    assert "state features of B: 2" in lines and "   +1.3863  U00:b" in lines


def test_wrong_input_is_one_line(place, capsys):
    (place / "bad").write_text("U00:%x[0,0]\nU01:%x[0,7]\n")
    status = main(["learn", *(str(place / name) for name in ("bad", "train", "other"))])
    assert status == 2
    assert "bad:2: column 7 in U01:%x[0,7]" in capsys.readouterr().err.splitlines()[-1]
    (place / "one").write_text("\na\n")
    assert main(["learn", *(str(place / name) for name in ("template", "one", "other"))]) == 2
    assert "one:2: 1 column found" in capsys.readouterr().err
