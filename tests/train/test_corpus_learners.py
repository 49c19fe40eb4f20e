"""The classical CRF as its learners see it, against enumeration of all labelings."""

import itertools

import numpy as np
import pytest
import torch

from ncrf.data.attributes import AttributeVocabulary
from ncrf.data.dataset import InternedColumn, offsets_of
from ncrf.data.feature_index import FeatureIndex
from ncrf.data.templates import parse_templates
from ncrf.train.corpus_learners import LabelledCorpus, ScalableCorpus, SentenceScorer

LABELS = 3
LENGTHS = [3, 1, 4, 2]


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(5)
    size = sum(LENGTHS)
    ids = rng.integers(0, 4, size)
    column = {"word": InternedColumn(ids, ["a", "b:0.5", "c", "d:2"])}
    lines = ["U:%x[0,0]", "U1:%v[-1,0]", "B", "B1:%v[0,0]"]
    templates = parse_templates(enumerate(lines, 1))
    offsets = offsets_of(np.array(LENGTHS))
    vocabulary, attributes = AttributeVocabulary.build(templates, column, offsets)
    labels = rng.integers(0, LABELS, size)
    sizes = vocabulary.num_unigram, vocabulary.num_bigram
    index = FeatureIndex.build(attributes, labels, LABELS, sizes)
    return LabelledCorpus(index, attributes, labels)


def counts_of_all(corpus, sentence):
    """Every labeling of one sentence with its feature counts, ``[n,K]``, by ``count``."""
    part = corpus.chosen(np.array([sentence]))
    length = int(part.attributes.offsets[-1])
    every = [np.array(y) for y in itertools.product(range(LABELS), repeat=length)]
    return every, np.stack([corpus.index.count(part.attributes, y) for y in every])


def test_the_best_labeling_and_its_mistake(corpus):
    rng = np.random.default_rng(1)
    scorer = SentenceScorer(corpus)
    found = 0
    for sentence in range(len(LENGTHS)):
        weights = rng.normal(size=corpus.index.num_features)
        every, counts = counts_of_all(corpus, sentence)
        best = int((counts @ weights).argmax())
        part = corpus.chosen(np.array([sentence]))
        given = next(n for n, y in enumerate(every) if (y == part.labels).all())
        mistake = scorer.mistake(torch.from_numpy(weights), sentence)
        if best == given:
            assert mistake is None
            continue
        found += 1
        difference = np.zeros(corpus.index.num_features)
        difference[mistake.features] = mistake.difference
        assert difference == pytest.approx(counts[given] - counts[best])
        assert mistake.wrong == int((every[best] != every[given]).sum())
    assert found > 1


def test_totals_and_expected_counts(corpus):
    weights = torch.from_numpy(np.random.default_rng(2).normal(size=corpus.index.num_features))
    scalable = ScalableCorpus(corpus, by_total=True)
    value, wanted, by_total, totals = 0.0, 0.0, {}, []
    for sentence in range(len(LENGTHS)):
        every, counts = counts_of_all(corpus, sentence)
        scores = counts @ weights.numpy()
        log_z = np.logaddexp.reduce(scores)
        part = corpus.chosen(np.array([sentence]))
        given = next(n for n, y in enumerate(every) if (y == part.labels).all())
        value -= scores[given] - log_z
        expected = np.exp(scores - log_z) @ counts
        wanted = wanted + expected
        total = float(counts.sum(1).max())
        totals.append(total)
        by_total[total] = by_total.get(total, 0.0) + expected
    assert scalable.largest_total == pytest.approx(max(totals))
    found, counts = scalable.expected(weights)
    assert found == pytest.approx(value) and counts.numpy() == pytest.approx(wanted)
    found, pairs = scalable.expected_by_total(weights)
    assert found == pytest.approx(value)
    support = scalable.support
    for total, expected in by_total.items():
        chosen = (support.totals - total).abs() < 1e-9
        spread = np.zeros(len(expected))
        spread[support.features[chosen]] = pairs[chosen]
        assert spread == pytest.approx(expected)
