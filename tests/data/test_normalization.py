"""What of a word does not count: digits, and case under ``lowercase``."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncrf.data.alphabet import UNKNOWN
from ncrf.data.batch import make_batch
from ncrf.data.dataset import intern_corpus
from ncrf.data.normalization import Normalization, normalize_digits
from ncrf.data.sentence import Sentence
from ncrf.data.vectors import most_frequent_forms
from ncrf.data.vocabulary import LabelScheme, Vocabulary


@pytest.mark.parametrize(
    ("word", "normalized"),
    [
        ("Anna", "Anna"),
        ("1996-08-22", "0000-00-00"),
        ("B2B", "B0B"),
        ("", ""),
        ("٣٫١٤", "٠٫٠٠".replace("٠", "0")),
        ("x²", "x0"),
        ("①½", "0½"),
        ("三", "三"),
        ("né1", "né0"),
    ],
)
def test_digits(word, normalized):
    assert normalize_digits(word) == normalized


@settings(derandomize=True, deadline=None)
@given(st.text(st.characters(exclude_categories=[])))
def test_digits_are_what_isdigit_takes_for_one(word):
    assert normalize_digits(word) == "".join("0" if c.isdigit() else c for c in word)


@pytest.mark.parametrize(
    ("digits", "case", "spelling", "key"),
    [
        (True, False, "A00", "A00"),
        (True, True, "A00", "a00"),
        (False, True, "A10", "a10"),
        (False, False, "A10", "A10"),
    ],
)
def test_the_key_and_what_the_characters_show(digits, case, spelling, key):
    normalization = Normalization(digits, case)
    assert (normalization.spelling("A10"), normalization.key("A10")) == (spelling, key)
    assert bool(normalization) == (digits or case)


def test_the_most_frequent_form_of_a_key():
    counts = {"US": 3, "us": 2, "1": 1, "2": 5}
    forms = most_frequent_forms(counts, Normalization(digits=True, case=True))
    assert forms == {"us": "US", "0": "2"}
    assert most_frequent_forms(counts, Normalization(digits=False)) == {}


class TestLowercase:
    """All spellings of a word share a row; its characters stay."""

    SENTENCES = (
        Sentence(["Bank", "bank", "BANK"], ["O", "O", "O"], {}),
        Sentence(["Paris"], ["S-LOC"], {}),
    )

    @pytest.fixture
    def corpus(self):
        return intern_corpus(self.SENTENCES, "made up")

    @pytest.fixture
    def vocabulary(self, corpus):
        scheme = LabelScheme("BIOES", "BIOES")
        return Vocabulary.build(corpus, scheme, normalization=Normalization(case=True))

    def test_alphabets(self, vocabulary):
        assert list(vocabulary.words.strings[2:]) == ["bank", "paris"]
        assert vocabulary.words.counts[2:].tolist() == [3, 1]
        assert {"B", "b", "K", "P"} <= set(vocabulary.characters.strings)

    def test_words_share_a_row_and_keep_their_characters(self, corpus, vocabulary):
        batch = make_batch(vocabulary.encode(corpus), np.array([0]))
        assert set(batch.words.tolist()) == set(vocabulary.words.ids(["bank"]).tolist())
        characters = [batch.characters[i].tolist() for i in batch.word_index[0].tolist()]
        for word, found in zip(("Bank", "bank", "BANK"), characters, strict=True):
            assert found == vocabulary.characters.ids(list(word)).tolist()

    def test_a_spelling_that_training_does_not_have_is_known(self, vocabulary):
        table = vocabulary.encode_types(["PARIS", "Rome"])
        assert table.words.tolist() == [*vocabulary.words.ids(["paris"]).tolist(), UNKNOWN]

    def test_json(self, vocabulary):
        value = vocabulary.to_json()
        assert Vocabulary.from_json(value).normalization == Normalization(case=True)
        del value["lowercase"]  # folders of earlier versions
        assert Vocabulary.from_json(value).normalization == Normalization()
