"""Rows of words are computed once, stay what they are, and begin anew when there is no room."""

import threading

import numpy as np
import pytest
import torch

from ncrf import Tagger
from ncrf.decode import known_words
from ncrf.decode.known_words import KnownWords
from ncrf.model.lookup import Lookup

WORDS = ["Anna", "met", "1984", "unheard", "Oslo", "Tromsø"]


class Counting(Lookup):
    """Counts the words whose rows it computes."""

    computed = 0

    def rows(self, types):
        self.computed += len(types.words)
        return super().rows(types)


@pytest.fixture
def predictor(trained):
    return Tagger.load(trained).predictor


def known(predictor):
    predictor.labeler.eval()
    lookup = Counting(predictor.labeler)
    return lookup, KnownWords(lookup, predictor.vocabulary, None, -1)


def test_a_word_is_computed_once_and_stays_the_same(predictor):
    lookup, words = known(predictor)
    first = words.find(WORDS[:4])
    again = words.find(WORDS[::-1])
    assert lookup.computed == len(WORDS)
    rows = first.table[first.rows]
    assert torch.equal(again.table[again.rows].flip(0)[:4], rows)
    keys = map(predictor.vocabulary.normalization.key, WORDS[:4])
    assert first.unknown.tolist() == [key not in predictor.vocabulary.words for key in keys]
    alone = known(predictor)[1].find(["Oslo"])
    torch.testing.assert_close(alone.table[alone.rows], again.table[again.rows][1:2])


def test_without_room_it_begins_anew_and_old_rows_stay(predictor, monkeypatch):
    lookup, _ = known(predictor)
    monkeypatch.setattr(known_words, "_MOST_BYTES", 4 * lookup.width * 4)
    lookup, words = known(predictor)
    first = words.find(WORDS[:4])
    kept = first.table[first.rows].clone()
    second = words.find(WORDS[2:])
    assert torch.equal(first.table[first.rows], kept)
    torch.testing.assert_close(second.table[second.rows[:2]], kept[2:])
    many = words.find([f"word{i}" for i in range(9)])
    assert len(many.table) == 9 and len(np.unique(many.rows)) == 9


def test_threads_share_it(predictor):
    _, words = known(predictor)
    found = words.find(WORDS)
    expected = dict(zip(WORDS, found.table[found.rows], strict=True))
    _, shared = known(predictor)
    wrong = []

    def ask(seed):
        rng = np.random.default_rng(seed)
        for _ in range(30):
            some = [str(w) for w in rng.permutation(WORDS)[:3]]
            found = shared.find(some)
            for word, row in zip(some, found.table[found.rows], strict=True):
                if not torch.allclose(row, expected[word], atol=1e-6):
                    wrong.append(word)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_weights_that_change_are_noticed(predictor):
    sentence = [["Anna", "met", "Bo"]]
    tagger = Tagger(predictor)
    before = tagger.predict(sentence)[0].probability
    with torch.no_grad():
        predictor.labeler.projection.weight.mul_(0.1)
    assert tagger.predict(sentence)[0].probability != pytest.approx(before, rel=1e-3)
