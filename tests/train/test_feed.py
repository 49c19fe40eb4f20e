"""Batches that are made ahead: every sentence once, the same ones for the same seed and epoch."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from ncrf import load_config
from ncrf.data import corpora
from ncrf.data.batch import UnknownReplacement
from ncrf.data.normalization import Normalization
from ncrf.data.vocabulary import Vocabulary
from ncrf.train.feed import Feed, ahead
from tests.conftest import SAMPLE

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def feed():
    config = load_config({"train_dir": str(SAMPLE / "dev.bioes"), "model_dir": "x"})
    corpus = corpora.load_corpus(config, config.files.train_dir)
    vocabulary = Vocabulary.build(
        corpus, corpora.settle_scheme(config, corpus), normalization=Normalization()
    )
    replacement = UnknownReplacement(
        0.5, vocabulary.words.singletons, vocabulary.characters.singletons, ()
    )
    dataset = vocabulary.encode(corpus)
    rows = np.flatnonzero(dataset.lengths > 3)
    return Feed(dataset, rows, 7, True, 60, -1, 3, replacement=replacement)


def test_every_sentence_comes_once_and_no_piece_is_too_large(feed):
    steps = list(feed.steps(0, 0, CPU))
    assert sorted(np.concatenate([step.rows for step in steps])) == feed.rows.tolist()
    assert any(len(step.batches) > 1 for step in steps)
    for step in steps:
        assert sorted(np.concatenate([b.index for b in step.batches])) == sorted(step.rows)
        for batch in step.batches:
            assert batch.mask.numel() <= 60 or len(batch.index) == 1


def test_batches_of_unlike_lengths_come_in_pieces(feed):
    whole = replace(feed, bucket=False, max_tokens=1 << 14)
    apart = replace(whole, spared=8)
    padded = [
        [b.mask.numel() for step in f.steps(0, 0, CPU) for b in step.batches]
        for f in (whole, apart)
    ]
    assert len(padded[0]) == len(whole.order(0)) < len(padded[1])
    assert sum(padded[0]) - sum(padded[1]) >= 8 * (len(padded[1]) - len(padded[0]))


def test_an_epoch_is_the_same_from_any_step_on_and_differs_from_the_next(feed):
    whole, rest, other = (list(feed.steps(*which, CPU)) for which in ((1, 0), (1, 4), (2, 0)))
    assert len(whole) == len(rest) + 4
    for left, right in zip(whole[4:], rest, strict=True):
        for a, b in zip(left.batches, right.batches, strict=True):
            assert torch.equal(a.words, b.words) and torch.equal(a.characters, b.characters)
    assert any(not np.array_equal(a.rows, b.rows) for a, b in zip(whole, other, strict=True))


def test_items_made_ahead_come_in_order():
    with ahead(lambda: iter(range(50))) as items:
        assert list(items) == list(range(50))


def test_what_is_raised_there_is_raised_here():
    def broken():
        yield 1
        raise ValueError("no more")

    with ahead(broken) as items:
        assert next(items) == 1
        with pytest.raises(ValueError, match="no more"):
            next(items)


def test_the_thread_ends_with_its_reader():
    made = []

    def endless():
        while True:
            made.append(1)
            yield 1

    before = threading.active_count()
    with pytest.raises(KeyError), ahead(endless) as items:
        next(items)
        raise KeyError
    assert threading.active_count() == before
    count = len(made)
    time.sleep(0.01)
    assert len(made) == count < 20
