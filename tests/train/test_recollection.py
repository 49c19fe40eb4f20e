"""What training remembers of a word's opinions, against a plain account of them."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ncrf.data.documents import ALONE
from ncrf.train.recollection import Recollection

LABELS = 3
CPU = torch.device("cpu")


@pytest.fixture
def corpus():
    """Six sentences of 0 to 5 words in four groups, and words without one."""
    rng = np.random.default_rng(5)
    lengths = np.array([4, 0, 5, 1, 3, 5])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    groups = rng.permutation([ALONE] * 6 + [0] * 5 + [1] * 3 + [2] * 2 + [3] * 2)
    return SimpleNamespace(offsets=offsets, same_words=groups)


class Account:
    """The same in the simplest way."""

    def __init__(self, corpus):
        self.corpus, self.known = corpus, {}

    def others(self, word):
        group = self.corpus.same_words[word]
        rest = [
            opinion
            for other, opinion in self.known.items()
            if other != word and group != ALONE and self.corpus.same_words[other] == group
        ]
        return torch.stack(rest).mean(0) if rest else torch.zeros(LABELS)


def batch_of(corpus, sentences):
    words = [range(corpus.offsets[s], corpus.offsets[s + 1]) for s in sentences]
    scores = torch.randn(len(sentences), max(1, *map(len, words)), LABELS)
    return SimpleNamespace(index=np.array(sentences)), words, scores


def test_against_the_account(corpus):
    torch.manual_seed(1)
    recollection, account = Recollection(corpus, LABELS, CPU), Account(corpus)
    rng = np.random.default_rng(2)
    for step in range(12):
        seen = {}
        for _ in range(1 + step % 2):  # a step in one piece or in two
            batch, words, scores = batch_of(corpus, rng.permutation(6)[:3].tolist())
            found = recollection.exchange(batch, scores)
            assert found.shape == scores.shape
            for row, places in enumerate(words):
                for position in range(scores.shape[1]):
                    wanted = torch.zeros(LABELS)
                    if position < len(places):
                        wanted = account.others(places[position])
                        seen[places[position]] = scores[row, position].softmax(0)
                    torch.testing.assert_close(found[row, position], wanted)
        recollection.commit()
        account.known |= seen


def test_it_goes_on_from_its_tensors_bit_by_bit(corpus):
    first, second = (Recollection(corpus, LABELS, CPU) for _ in range(2))
    for sentences in ([0, 2, 4], [2, 3, 5], [0, 5]):
        batch, _, scores = batch_of(corpus, sentences)
        first.exchange(batch, scores)
        first.commit()
    second.restore({name: values.clone() for name, values in first.tensors().items()})
    batch, _, scores = batch_of(corpus, [2, 4, 5])
    assert torch.equal(first.exchange(batch, scores), second.exchange(batch, scores))


@pytest.mark.parametrize("lost", ["recollection.sums", "recollection.opinions"])
def test_another_state_is_refused(corpus, lost):
    recollection = Recollection(corpus, LABELS, CPU)
    state = recollection.tensors()
    with pytest.raises(KeyError):
        recollection.restore({k: v for k, v in state.items() if k != lost})
    with pytest.raises(RuntimeError):
        recollection.restore(state | {lost: torch.zeros(99, LABELS)})


def test_no_gradient_goes_through_it(corpus):
    recollection = Recollection(corpus, LABELS, CPU)
    for _ in range(2):
        batch, _, scores = batch_of(corpus, [0, 2, 5])
        found = recollection.exchange(batch, scores.requires_grad_())
        recollection.commit()
    assert found.any() and not found.requires_grad
