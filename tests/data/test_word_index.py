import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncrf.data import word_index
from ncrf.data.word_index import WordIndex

word = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=3)
HASHES = {
    "all alike": lambda words: np.zeros(len(words), np.uint32),
    "few": lambda words: np.array([len(word) for word in words], np.uint32),
    "CRC-32": word_index.word_hashes,
}


@pytest.mark.parametrize("hashes", HASHES)
@given(st.lists(word, min_size=1), st.lists(word))
def test_a_word_is_found_in_its_first_row(hashes, words, others):
    text = np.frombuffer("\n".join(words).encode(), np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_index, "word_hashes", HASHES[hashes])
        index = WordIndex(text)
        again = WordIndex(text, index.hashes, index.rows)
        expected = {word: words.index(word) for word in {*words, *others} if word in words}
        for made in (index, again):
            assert made.find([*others, *words, "\ud800"]) == expected
            assert list(made.find(others).values()) == sorted(made.find(others).values())
            assert made.words() == words and len(made) == len(words)


def test_the_hash_is_that_of_files_already_written():
    # The check value by which the catalogue of CRCs tells this one from others.
    assert word_index.word_hashes([b"123456789"]).tolist() == [0xCBF43926]
