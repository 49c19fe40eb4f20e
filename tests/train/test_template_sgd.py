"""SGD on batches of template scores reaches the likelihood that the whole corpus allows."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from ncrf.crf import log_prob
from ncrf.model.template_scores import TemplateScores
from ncrf.train.template_objective import TemplateObjective, fit_weights
from tests.template_oracle import encoded, features, log_likelihood, names

LABELS = ["X", "Y", "Z"]
LINES = ["U00:%x[0,0]", "B"]


def corpus():
    """Few words with labels at random, so that each is seen with each and the optimum is finite."""
    rng = np.random.default_rng(2)
    found = []
    for length in (1, 2, 3) * 10:
        rows = [[word] for word in rng.choice(["a", "b"], length).tolist()]
        found.append((rows, rng.choice(LABELS, length, p=[0.5, 0.3, 0.2]).tolist()))
    return found


CORPUS = corpus()
TOKENS = sum(len(labels) for _, labels in CORPUS)


def best_by_enumeration(keys, c2):
    """The least objective by scipy on the enumeration of all labelings."""

    def objective(weights):
        of = dict(zip(keys, weights.tolist(), strict=True))

        def score(rows, labels):
            found = features(LINES, rows, labels)
            return sum(of.get(name, 0) * count for name, count in found.items()), found

        total, slope = log_likelihood(score, CORPUS, LABELS)
        gradient = 2 * c2 * weights - np.array([slope[key] for key in keys])
        return c2 * (weights @ weights) - total, gradient

    return minimize(objective, np.zeros(len(keys)), jac=True, method="BFGS").fun


def by_sgd(index, attributes, labels, c2, steps):
    """K weights after so many steps on batches of ten sentences, with a falling rate."""
    scores = TemplateScores(index)
    between = torch.zeros(index.num_transitions, requires_grad=True)
    optimizer = torch.optim.SGD([*scores.parameters(), between], lr=1.0)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step / 30))
    width = int(np.diff(attributes.offsets).max())
    places = attributes.offsets[:-1, None] + np.arange(width)
    mask = places < attributes.offsets[1:, None]
    places = np.where(mask, places, 0)
    rows = torch.from_numpy(np.where(mask[..., None], attributes.unigram[places], -1))
    gold, inside = torch.from_numpy(labels[places]), torch.from_numpy(mask)
    order = torch.Generator().manual_seed(1)
    pairs = torch.from_numpy(index.transition_pairs)
    for step in range(steps):
        if step % 3 == 0:
            batches = torch.randperm(len(rows), generator=order).chunk(3)
        batch = batches[step % 3]
        transitions = torch.zeros(len(LABELS) ** 2).index_put((pairs,), between)
        found = log_prob(
            scores(rows[batch]), gold[batch], transitions.view(3, 3), mask=inside[batch]
        )
        penalty = c2 * sum((w**2).sum() for w in (*scores.parameters(), between))
        loss = (penalty * len(batch) / len(rows) - found.sum()) / len(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rate.step()
    return torch.cat([scores.state_weights, between, scores.bigram_weights]).detach().double()


@pytest.mark.parametrize("c2", [0.0, 0.2])
def test_sgd_and_lbfgs_reach_the_optimum_of_scipy(c2):
    vocabulary, attributes, labels, index = encoded(LINES, CORPUS, LABELS)
    exact = best_by_enumeration(names(vocabulary, index, LABELS), c2)
    objective = TemplateObjective(index, attributes, labels, c2=c2, dtype=torch.float64)
    full = objective(fit_weights(objective, tolerance=1e-8))[0]
    assert full / TOKENS == pytest.approx(exact / TOKENS, abs=1e-6)
    found = objective(by_sgd(index, attributes, labels, c2, 900).numpy())[0]
    assert found / TOKENS == pytest.approx(exact / TOKENS, abs=1e-4)
