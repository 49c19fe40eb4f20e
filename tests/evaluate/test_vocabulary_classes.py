"""In- and out-of-vocabulary words: the model's own rules, the classes of Ma and Hovy."""

from collections import Counter

import numpy as np
import pytest

from ncrf.data.alphabet import Alphabet
from ncrf.data.dataset import InternedColumn
from ncrf.data.normalization import Normalization
from ncrf.data.vocabulary import LabelScheme, Vocabulary
from ncrf.evaluate.vocabulary_classes import VocabularyClasses, known_words


class Vectors:
    """The words of a vector file."""

    def __init__(self, *words):
        self.words = set(words)

    def rows(self, candidates):
        found = np.array([any(s in self.words for s in word) for word in candidates], np.bool_)
        return np.zeros((len(candidates), 2), np.float32), found


def vocabulary(*words, number_normalized=True):
    return Vocabulary(
        words=Alphabet.build(Counter(words)),
        characters=Alphabet.build(Counter("a")),
        features={},
        labels=Alphabet.build(Counter("O"), special=()),
        scheme=LabelScheme("IOB2", "IOB2"),
        normalization=Normalization(digits=number_normalized),
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("both", "IV"),
        ("vector", "OOTV"),
        ("train", "OOEV"),
        ("neither", "OOBV"),
        ("both both", "IV"),
        ("both vector", "OOTV"),
        ("both train", "OOEV"),
        ("both neither", "OOBV"),
        ("vector train", "OOBV"),  # one word is not in training, another has no vector
        ("vector neither", "OOBV"),
        ("train neither", "OOBV"),
    ],
)
def test_classes_of_words_and_entities(words, expected):
    classes = VocabularyClasses({"both", "train"}, {"both", "vector"})
    assert classes.of(words.split()) == expected


def test_without_vectors_only_training_tells():
    classes = VocabularyClasses({"train"}, None)
    assert classes.of(["train"]) == "IV or OOEV"
    assert classes.of(["train", "new"]) == "OOTV or OOBV"


def test_case_counts_for_training_and_not_for_vectors():
    known = known_words(["Anna", "anna", "ANNA", "Bo"], vocabulary("Anna"), Vectors("anna", "Anna"))
    assert known.trained == {"Anna"} and known.embedded == {"Anna", "anna", "ANNA"}
    known = known_words(
        ["Anna", "anna", "ANNA", "Bo"], vocabulary("Anna"), Vectors("Anna"), ignore_case=True
    )
    assert known.trained == {"Anna", "anna", "ANNA"} and known.embedded == {"Anna"}


def test_digits_count_as_the_model_says():
    words = ["1996", "1997", "x1", "x2"]
    known = known_words(words, vocabulary("0000", "x0"), Vectors("1997", "x0"))
    assert known.trained == set(words) and known.embedded == {"1997", "x1", "x2"}
    plain = vocabulary("1996", "x1", number_normalized=False)
    known = known_words(words, plain, Vectors("1997", "x0"))
    assert known.trained == {"1996", "x1"} and known.embedded == {"1997"}


def test_the_training_corpus_tells_the_form_that_was_looked_up():
    """In training all four-digit numbers have the row of the most frequent one."""
    words = ["1996", "1997", "50"]
    train = InternedColumn(np.array([0, 0, 1, 2]), ["1996", "1997", "Rare"])
    known = known_words(words, vocabulary("0000", "00"), Vectors("1996", "50"), train)
    assert known.trained == {"1996", "1997"}  # the alphabet's 00 is not asked
    assert known.embedded == {"1996", "1997", "50"}
    without = known_words(words, vocabulary("0000", "00"), Vectors("1996", "50"))
    assert without.embedded == {"1996", "50"}


def test_special_entries_are_no_words():
    assert known_words(["<unk>", "<pad>"], vocabulary("a"), None).trained == set()
    assert known_words(["<unk>"], vocabulary("<unk>"), None).trained == {"<unk>"}
