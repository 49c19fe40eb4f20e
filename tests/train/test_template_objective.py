"""The corpus likelihood of the classical CRF against the enumeration of all labelings."""

import numpy as np
import pytest
import torch
from scipy.optimize import approx_fprime

from ncrf.model import corpus_chains
from ncrf.model.corpus_chains import CorpusLayout
from ncrf.train import template_objective
from ncrf.train.template_objective import TemplateObjective
from tests.template_oracle import encoded, features, log_likelihood, names

LABELS = ["X", "Y", "Z"]
UNIGRAM = ["U", "U00:%x[0,0]", "U01:%x[-1,0]/%x[0,0]", "U02:%v[1,1]"]
CORPUS = [
    ([["a", "p:2"], ["b", "q"], ["a", "q"], ["c", "p:-0.5"]], ["X", "Y", "Z", "Y"]),
    ([], []),
    ([["b", "p:2"]], ["Y"]),
    ([["a", "q"], ["b", "q"], ["c", "r:3"], ["a", "q"]], ["X", "X", "Y", "Z"]),
    ([["a", "q"], ["b", "q"], ["c", "p:3"]], ["X", "Z", "Z"]),
    ([["c", "q"]], ["Z"]),
]


def model(lines, corpus=CORPUS, **options):
    choices = {k: options.pop(k) for k in list(options) if k.startswith("all_possible")}
    vocabulary, attributes, ids, index = encoded(lines, corpus, LABELS, **choices)
    objective = TemplateObjective(index, attributes, ids, **options)
    return objective, names(vocabulary, index, LABELS)


def brute_force(lines, weights, keys, corpus=CORPUS):
    """Negative log-likelihood and its gradient by enumeration."""
    of = dict(zip(keys, weights.tolist(), strict=True))

    def score(rows, labels):
        found = features(lines, rows, labels)
        return sum(of.get(name, 0) * count for name, count in found.items()), found

    total, gradient = log_likelihood(score, corpus, LABELS)
    return -total, -np.array([gradient[key] for key in keys])


@pytest.mark.parametrize(
    "bigram",
    [["B"], ["B", "B00:%x[0,0]", "B01:%v[-1,1]/%x[0,0]"], ["B00:%x[0,0]"], []],
    ids=["transitions", "both", "observations", "none"],
)
@pytest.mark.parametrize("everything", [False, True])
def test_value_and_gradient(bigram, everything):
    lines = UNIGRAM + bigram
    objective, keys = model(
        lines,
        all_possible_states=everything,
        all_possible_transitions=everything,
    )
    weights = np.random.default_rng(1).normal(size=len(keys))
    value, gradient = objective(weights)
    expected, slope = brute_force(lines, weights, keys)
    assert value == pytest.approx(expected, rel=1e-12)
    assert np.allclose(gradient, slope, rtol=1e-10, atol=1e-12)
    assert objective.log_likelihood(weights) == pytest.approx(-expected / 13)


def test_float32_is_near():
    lines = [*UNIGRAM, "B", "B00:%x[0,0]"]
    objective, keys = model(lines, dtype=torch.float32)
    weights = np.random.default_rng(1).normal(size=len(keys)) * 3
    value, gradient = objective(weights)
    expected, slope = brute_force(lines, weights, keys)
    assert gradient.dtype == np.float64
    assert value == pytest.approx(expected, abs=1e-5)
    assert np.allclose(gradient, slope, atol=1e-5)


def test_scores_far_apart():
    lines = [*UNIGRAM, "B"]
    objective, keys = model(lines)
    weights = np.random.default_rng(1).normal(size=len(keys)) * 300
    value, gradient = objective(weights)
    expected, slope = brute_force(lines, weights, keys)
    assert value == pytest.approx(expected, rel=1e-12)
    assert np.allclose(gradient, slope, atol=1e-9)


def test_the_penalty_is_that_of_crfsuite():
    objective, keys = model([*UNIGRAM, "B"], c2=0.7)
    plain, _ = model([*UNIGRAM, "B"])
    weights = np.random.default_rng(1).normal(size=len(keys))
    assert objective(weights)[0] == pytest.approx(plain(weights)[0] + 0.7 * (weights**2).sum())
    numeric = approx_fprime(weights, lambda w: objective(w)[0], 1e-7)
    assert np.allclose(objective(weights)[1], numeric, atol=1e-5)
    assert objective.log_likelihood(weights) == pytest.approx(plain.log_likelihood(weights))


def test_expected_counts_at_the_start_are_those_of_even_chances():
    objective, keys = model(["U", "B"])
    log_z, expected = objective.expected(np.zeros(len(keys)))
    assert log_z == pytest.approx(13 * np.log(3))
    counts = dict(zip(keys, expected.tolist(), strict=True))
    assert counts["U", ("X",)] == pytest.approx(13 / 3)
    assert counts["B", ("X", "Y")] == pytest.approx(8 / 9)


def random_corpus(size, longest=8):
    rng = np.random.default_rng(5)
    corpus = []
    for length in rng.integers(0, longest + 1, size).tolist():
        rows = [[w, "q"] for w in rng.choice(list("abc"), length).tolist()]
        corpus.append((rows, rng.choice(LABELS, length).tolist()))
    return corpus


def test_the_batches_do_not_matter(monkeypatch):
    corpus = random_corpus(40)
    lines = [*UNIGRAM, "B", "B00:%x[0,0]"]
    found = []
    for slack, tokens, pairs in ((0.1, 8192, 1 << 21), (0.0, 5, 40), (3.0, 64, 1 << 10)):
        monkeypatch.setattr(corpus_chains, "_SLACK", slack)
        monkeypatch.setattr(corpus_chains, "_BATCH_TOKENS", tokens)
        monkeypatch.setattr(corpus_chains, "_BATCH_PAIRS", pairs)
        objective, keys = model(lines, corpus)
        found.append(objective(np.linspace(-1, 1, len(keys))))
    for value, gradient in found[1:]:
        assert value == pytest.approx(found[0][0], rel=1e-12)
        assert np.allclose(gradient, found[0][1], atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_threads_find_the_same_and_every_time_to_the_bit(monkeypatch, dtype):
    monkeypatch.setattr(template_objective, "_LEAST_SENTENCES", 5)
    corpus = random_corpus(40)
    lines = [*UNIGRAM, "B", "B00:%x[0,0]"]
    one, keys = model(lines, corpus, dtype=dtype, c2=0.1)
    weights = np.linspace(-1, 1, len(keys))
    value, gradient = one(weights)
    for threads in (2, 3, 100):
        found = [model(lines, corpus, dtype=dtype, c2=0.1, threads=threads)[0] for _ in range(2)]
        results = [objective(weights) for objective in (*found, *found)]
        near = 1e-12 if dtype == torch.float64 else 1e-4  # summed over 160 words
        assert results[0][0] == pytest.approx(value, rel=near)
        assert np.allclose(results[0][1], gradient, rtol=near, atol=near)
        for again in results[1:]:
            assert again[0] == results[0][0]
            assert again[1].tobytes() == results[0][1].tobytes()


def test_parts_of_a_layout_hold_every_word_once():
    offsets = np.append(0, np.cumsum([3, 0, 1, 8, 8, 2, 3, 9, 1, 20]))
    parts = [CorpusLayout.build(offsets, 24, (p, 3)).tokens for p in range(3)]
    words = np.concatenate(parts)
    assert sorted(words[words >= 0].tolist()) == list(range(55))


def test_a_layout_holds_every_word_once_and_keeps_sentences_in_rows():
    lengths = np.array([3, 0, 1, 8, 8, 2, 3, 9, 1, 20])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    layout = CorpusLayout.build(offsets, 24)
    words = layout.tokens[layout.tokens >= 0]
    assert sorted(words.tolist()) == list(range(55))
    for batch in layout.batches:
        rows = layout.tokens[batch.places].reshape(batch.shape)
        assert rows.size <= 24
        for b, row in enumerate(rows):
            length = int((row >= 0).sum())
            assert (batch.mask is None) == (rows >= 0).all()
            assert batch.mask is None or batch.mask[b].tolist() == (row >= 0).tolist()
            start = row[0]
            assert row[:length].tolist() == list(range(start, start + length))
            assert start in offsets
            assert length == lengths[np.searchsorted(offsets, start, "right") - 1]
