"""Template scores, of a corpus and of batches, against plain loops over the features."""

import numpy as np
import pytest
import torch

from ncrf.data.attributes import TokenAttributes
from ncrf.data.feature_index import FeatureIndex
from ncrf.model import template_scores
from ncrf.model.corpus_scores import CorpusScorer
from ncrf.model.template_scores import TemplateScores

LABELS = 22  # so that attributes with one or two labels are scored one by one


def make_corpus(seed, tokens=60, width=5, attributes=40, values=False, **options):
    """Random attributes [T,R] of words and pairs, and the features of random labels."""
    rng = np.random.default_rng(seed)
    # Few attributes are frequent; some places have none.
    ids = np.minimum(rng.geometric(0.08, (tokens, width)) - 1, attributes) - 1
    pairs = rng.integers(-1, 4, (tokens, 2))
    pairs[0] = pairs[30] = -1
    of = [
        rng.choice([-0.5, 1, 2], a.shape).astype(np.float32) if values else None
        for a in (ids, pairs)
    ]
    found = TokenAttributes(
        np.array([0, 30, tokens]), ids.astype(np.int32), pairs.astype(np.int32), *of
    )
    labels = rng.integers(0, LABELS, tokens)
    return found, FeatureIndex.build(found, labels, LABELS, (attributes, 4), **options)


def slow_scores(ids, values, offsets, outcomes, weights, size):
    """Sums [T,size] by the definition."""
    scores = np.zeros((len(ids), size))
    for t, row in enumerate(ids):
        for r, a in enumerate(row):
            for k in range(offsets[a], offsets[a + 1]) if a >= 0 else ():
                scores[t, outcomes[k]] += weights[k] * (1 if values is None else values[t, r])
    return scores


def slow_emissions(found, index, weights):
    features = index.state_offsets, index.state_labels, weights, LABELS
    return slow_scores(found.unigram, found.unigram_values, *features)


def kinds(index):
    """How many attributes have a row of their own, and how many are scored one by one."""
    degree = np.diff(index.state_offsets)
    return int((degree > 2).sum()), int(((degree > 0) & (degree <= 2)).sum())


def gradient_of(scorer, index, d):
    out = torch.zeros(index.num_states, dtype=torch.float64)
    scorer.gradient(d, out)
    return out


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_corpus(values, every, dtype):
    few = {"attributes": 9, "all_possible_states": True} if every else {}
    found, index = make_corpus(1, values=values, **few)
    assert every or min(kinds(index)) > 3
    assert not every or len(np.unique(found.unigram)) == 10  # all of them occur
    weights = np.random.default_rng(2).normal(size=index.num_states)
    scorer = CorpusScorer(index, found.unigram, found.unigram_values, dtype)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    for factor in (1.0, -2.0):  # nothing of one call is left for the next
        scaled = weights * factor
        emissions = scorer.emissions(torch.from_numpy(scaled).to(dtype))
        expected = slow_emissions(found, index, scaled)
        assert emissions.dtype == dtype
        assert np.allclose(emissions, expected, rtol=tolerance, atol=tolerance)
    # The gradient is the transpose: <scores(w), d> = <w, gradient(d)> for all w.
    d = torch.randn(emissions.shape, generator=torch.Generator().manual_seed(3)).to(dtype)
    gradient = gradient_of(scorer, index, d)
    assert gradient.dtype == torch.float64
    units = np.eye(index.num_states)
    direct = [(slow_emissions(found, index, unit) * d.numpy()).sum() for unit in units]
    assert np.allclose(gradient, direct, rtol=tolerance, atol=tolerance)


def test_sums_of_many_float32_numbers_keep_their_digits():
    words = 200_000
    ids = np.zeros((words, 1), np.int32)
    found = TokenAttributes(np.array([0, words]), ids, np.zeros((words, 0), np.int32))
    labels = np.zeros(words, np.int64)
    for count in (3, 22):  # a row of its own, and features one by one
        index = FeatureIndex.build(found, labels, count, (1, 0))
        scorer = CorpusScorer(index, ids, None, torch.float32)
        d = torch.full((words, count), 0.1)
        exact = float(torch.tensor(0.1).double()) * words
        assert gradient_of(scorer, index, d).item() == pytest.approx(exact, rel=2e-6)


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("tokens", [4, 60])
def test_batches_score_as_the_corpus_does(values, tokens):
    found, index = make_corpus(1, values=values)
    layer = TemplateScores(index).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in layer.parameters():
            weights.copy_(torch.randn(weights.shape, generator=generator))
    of_values = found.unigram_values
    cut = slice(0, tokens)  # few words take another way than many
    ids = torch.from_numpy(found.unigram[cut]).view(2, tokens // 2, -1)
    given = None if of_values is None else torch.from_numpy(of_values[cut]).view(ids.shape)
    emissions = layer(ids, given)
    expected = slow_emissions(found, index, layer.state_weights.detach().numpy())[cut]
    assert emissions.shape == (2, tokens // 2, LABELS)
    assert np.allclose(emissions.detach().view(tokens, -1), expected)
    d = torch.randn(emissions.shape, generator=generator, dtype=torch.float64)
    (emissions * d).sum().backward()
    part = found.unigram[cut]
    scorer = CorpusScorer(index, part, None if given is None else of_values[cut], torch.float64)
    assert torch.allclose(layer.state_weights.grad, gradient_of(scorer, index, d.view(tokens, -1)))


@pytest.mark.parametrize("values", [False, True])
def test_pair_scores(values):
    found, index = make_corpus(4, values=values)
    layer = TemplateScores(index).double()
    torch.nn.init.normal_(layer.bigram_weights, generator=torch.Generator().manual_seed(0))
    ids = torch.from_numpy(found.bigram).view(2, 30, 2)
    of_values = found.bigram_values
    given = None if of_values is None else torch.from_numpy(of_values).view(ids.shape)
    scores = layer.pair_scores(ids, given)
    weights = layer.bigram_weights.detach().numpy()
    features = index.bigram_offsets, index.bigram_pairs, weights, LABELS**2
    expected = slow_scores(found.bigram, of_values, *features)
    expected = expected.reshape(2, 30, LABELS, LABELS)[:, 1:]
    assert np.allclose(scores.detach(), expected)
    scores.square().sum().backward()
    assert (layer.bigram_weights.grad != 0).any()


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("tokens", [4, 60])
def test_sparse_gradients_are_those_of_dense_ones(values, tokens, monkeypatch):
    monkeypatch.setattr(template_scores, "_ROWWISE_WEIGHTS", 1)
    found, index = make_corpus(1, values=values)
    dense, sparse = TemplateScores(index).double(), TemplateScores(index).double()
    for weights in dense.parameters():
        torch.nn.init.normal_(weights, generator=torch.Generator().manual_seed(0))
    sparse.load_state_dict(dense.state_dict())
    assert sparse.rowwise_gradients() == [sparse.state_weights, sparse.bigram_weights]

    def cut(of_words):
        return None if of_words is None else torch.from_numpy(of_words[:tokens]).unsqueeze(0)

    found_by = []
    for layer in (dense, sparse):
        scores = [
            layer(cut(found.unigram), cut(found.unigram_values)),
            layer.pair_scores(cut(found.bigram), cut(found.bigram_values)),
        ]
        generator = torch.Generator().manual_seed(1)
        d = [torch.randn(s.shape, generator=generator, dtype=s.dtype) for s in scores]
        sum((x * y).sum() for x, y in zip(scores, d, strict=True)).backward()
        found_by.append([*scores, *(weights.grad for weights in layer.parameters())])
    for weights in sparse.parameters():
        assert weights.grad.is_sparse
        assert weights.grad._nnz() < len(weights) or tokens == 60
    for one, other in zip(*found_by, strict=True):
        assert torch.allclose(one, other.to_dense())
    with torch.inference_mode():  # labeling takes the ways it always took
        assert torch.allclose(sparse(cut(found.unigram), cut(found.unigram_values)), found_by[0][0])


def test_words_without_attributes_have_a_sparse_gradient_too(monkeypatch):
    monkeypatch.setattr(template_scores, "_ROWWISE_WEIGHTS", 1)
    _, index = make_corpus(1)
    layer = TemplateScores(index)
    layer.rowwise_gradients()
    scores = layer(torch.full((1, 2, 3), -1, dtype=torch.int32))
    scores.sum().backward()
    assert not scores.any() and layer.state_weights.grad._nnz() == 0


def test_a_layer_without_bigram_attributes_has_no_pair_scores():
    found, _ = make_corpus(1)
    without = FeatureIndex.build(
        TokenAttributes(found.offsets, found.unigram, found.bigram[:, :0]),
        np.zeros(60, np.int64),
        LABELS,
        (40, 0),
    )
    assert TemplateScores(without).pair_scores(torch.zeros(2, 3, 0, dtype=torch.int32)) is None


def test_saved_is_the_weights_alone():
    _, index = make_corpus(1)
    assert set(TemplateScores(index).state_dict()) == {"state_weights", "bigram_weights"}
