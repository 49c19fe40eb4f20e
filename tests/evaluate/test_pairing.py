"""Walking gold and predicted files side by side."""

import pytest

from ncrf.data.columns import Sentence
from ncrf.errors import InputError
from ncrf.evaluate import paired


def sentence(words, labels="", *, file="gold", line=1, boundary=False):
    return Sentence(
        words=words.split(), labels=labels.split() or None, file=file, line=line, boundary=boundary
    )


def predicted(words, labels="O", line=1, **more):
    return sentence(words, labels, file="predicted", line=line, **more)


def test_labels_come_in_pairs_and_boundaries_count_for_nothing():
    boundary = sentence("-DOCSTART-", boundary=True)
    gold = [boundary, sentence("Anna left", "B-PER O"), boundary, sentence("Oslo", "B-LOC")]
    found = [predicted("Anna left", "S-PER O"), boundary, predicted("Oslo", "O")]
    assert list(paired(gold, found)) == [
        (["B-PER", "O"], ["S-PER", "O"]),
        (["B-LOC"], ["O"]),
    ]


@pytest.mark.parametrize(
    ("gold", "found", "message"),
    [
        (
            [sentence("a b", "O O", line=10)],
            [predicted("a c", "O O", line=20)],
            r"^predicted:21: 'c' where gold:11 has 'b' \(the same words",
        ),
        (
            [sentence("a b", "O O", line=10)],
            [predicted("a", "O", line=20)],
            "^predicted:21: the end of the sentence where gold:11 has 'b'",
        ),
        (
            [sentence("a", "O", line=10)],
            [predicted("a b", "O O", line=20)],
            "^predicted:21: 'b' where gold:11 has the end of the sentence",
        ),
        (
            [sentence("a", "O"), sentence("b", "O", line=3)],
            [predicted("a")],
            "^gold:3: a gold sentence that the predicted file does not have",
        ),
        (
            [sentence("a", "O")],
            [predicted("a"), predicted("b", line=3)],
            "^predicted:3: a predicted sentence that the gold file does not have",
        ),
        ([sentence("a", "O")], [predicted("a", "", line=5)], "^predicted:5: no labels"),
        ([sentence("a", "")], [predicted("a")], "^gold:1: no labels"),
    ],
)
def test_files_that_differ_are_refused_with_the_line(gold, found, message):
    with pytest.raises(InputError, match=message):
        list(paired(gold, found))


def test_the_line_is_the_words_own():
    # Comments stood between the words of this sentence.
    found = Sentence(words=["a", "c"], labels=["O", "O"], file="predicted", line=4, lines=[4, 8])
    with pytest.raises(InputError, match=r"^predicted:8: 'c'"):
        list(paired([sentence("a b", "O O")], [found]))
