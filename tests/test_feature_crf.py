"""The CRF of textbook feature functions: a published count, and likelihoods by the definition."""

from collections import Counter

import numpy as np
import pytest
from scipy.optimize import minimize

import ncrf
from ncrf.errors import InputError
from tests.template_oracle import log_likelihood, names

TOY = [
    [1, 2, 3, 0, 1, 3, 4],
    [1, 2, 3],
    [0, 2, 4, 2],
    [4, 3, 2, 1],
    [3, 1, 1, 1, 1],
    [2, 1, 3, 2, 1, 3, 4],
]
RULES = {"unigram": [[0], [1], [-1], [0, 1], [-1, 0]], "bigram": [[0]]}

# The same x with different y, so that the largest likelihood is reached at finite weights.
X = [[0, 1, 1], [0, 1, 1], [1, 0], [1, 0], [0], [0], [1, 1, 0, 1]]
Y = [[0, 1, 2], [0, 1, 1], [1, 0], [2, 2], [1], [0], [2, 1, 0, 0]]


def textbook(unigram, bigram, x, y):
    """The functions that are 1 for a labelled sentence, by the definition; H and T are labels."""
    padded, labels = ["H", *x, "T"], ["H", *y, "T"]
    places = range(len(padded))
    found = Counter()
    for rule in unigram:
        for i in places:
            if all(i + offset in places for offset in rule):
                found["s", tuple(rule), tuple(padded[i + o] for o in rule), labels[i]] += 1
    for rule in bigram:
        for i in places[1:]:
            if all(i + offset in places for offset in rule):
                seen = tuple(padded[i + o] for o in rule)
                found["t", tuple(rule), seen, labels[i - 1], labels[i]] += 1
    return found


def all_functions(unigram, bigram, x, y):
    found = Counter()
    for words, labels in zip(x, y, strict=True):
        found += textbook(unigram, bigram, words, labels)
    return sorted(found, key=str)


def best_likelihood(unigram, bigram, x, y, c2=0.0):
    """The largest log-likelihood per word, by scipy on the enumeration of all labelings."""
    keys = all_functions(unigram, bigram, x, y)
    labels = sorted({label for row in y for label in row})

    def objective(weights):
        of = dict(zip(keys, weights.tolist(), strict=True))

        def score(words, labeling):
            found = textbook(unigram, bigram, words, labeling)
            return sum(of.get(key, 0) * n for key, n in found.items()), found

        total, gradient = log_likelihood(score, zip(x, y, strict=True), labels)
        slope = np.array([gradient[key] for key in keys])
        return -total + c2 * (weights @ weights), 2 * c2 * weights - slope

    start = np.zeros(len(keys))
    found = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-6})
    penalty = c2 * (found.x @ found.x)
    return (penalty - found.fun) / sum(map(len, x))


def test_the_published_count_of_feature_functions():
    model = ncrf.FeatureCRF(**RULES).fit(TOY, TOY)
    assert model.num_features == 122
    parts = {}
    for rule in RULES["unigram"]:
        parts[tuple(rule)] = ncrf.FeatureCRF(unigram=[rule], bigram=[]).fit(TOY, TOY).num_features
    assert parts == {(0,): 7, (1,): 23, (-1,): 23, (0, 1): 23, (-1, 0): 23}
    assert ncrf.FeatureCRF(unigram=[], bigram=[[0]]).fit(TOY, TOY).num_features == 23
    assert model.predict(TOY) == TOY
    assert model.log_likelihood(TOY, TOY) > -1e-3


@pytest.mark.parametrize(
    ("unigram", "bigram"),
    [([[0]], [[]]), ([[], [-1, 1]], [[0], [-1]]), ([[0, 2]], []), ([], [[1], [-2, 0]])],
)
def test_features_are_counted_as_the_definition_has_it(unigram, bigram):
    model = ncrf.FeatureCRF(unigram, bigram, max_iterations=1).fit(X, Y)
    assert model.num_features == len(all_functions(unigram, bigram, X, Y))


@pytest.mark.parametrize("c2", [0.0, 0.3])
@pytest.mark.parametrize(("unigram", "bigram"), [([[0], [-1, 0]], [[0]]), ([[1]], [[], [-1]])])
def test_the_likelihood_is_the_largest_that_the_functions_allow(unigram, bigram, c2):
    model = ncrf.FeatureCRF(unigram, bigram, c2=c2).fit(X, Y)
    found = model.log_likelihood(X, Y)
    assert found == pytest.approx(best_likelihood(unigram, bigram, X, Y, c2), abs=1e-4)


def test_the_best_labeling_is_the_one_with_the_highest_score():
    model = ncrf.FeatureCRF([[0], [-1, 0]], [[], [0]], c2=0.05).fit(X, Y)
    # Each labeling's probability by the model; those of all labelings sum to 1.
    every = [[a, b, c] for a in range(3) for b in range(3) for c in range(3)]
    logs = [3 * model.log_likelihood([[0, 1, 1]], [y]) for y in every]
    assert np.exp(logs).sum() == pytest.approx(1)
    assert model.predict([[0, 1, 1]]) == [every[int(np.argmax(logs))]]


def test_strings_and_other_labels():
    model = ncrf.FeatureCRF().fit([["a", "b"], ["b"]], [["X", None], [None]])
    assert model.labels == ["X", None]
    assert model.predict([["b", "a"], [], ["new"]])[:2] == [[None, "X"], []]


def test_numpy_arrays():
    x = np.array([[1, 2, 1], [2, 2, 1]])
    model = ncrf.FeatureCRF().fit(x, x)
    assert model.predict(x) == x.tolist()


def test_mistakes_are_named():
    model = ncrf.FeatureCRF()
    with pytest.raises(InputError, match=r"not fitted \(call fit"):
        model.predict([[1]])
    with pytest.raises(InputError, match="not fitted"):
        model.num_features  # noqa: B018
    with pytest.raises(InputError, match="x has 1 sentences, y has 2"):
        model.fit([[1]], [[1], [2]])
    with pytest.raises(InputError, match="sentence 1 has 2 words, but 1 labels"):
        model.fit([[1], [1, 2]], [[1], [2]])
    with pytest.raises(InputError, match="holds no words"):
        model.fit([[]], [[]])
    model.fit([[1]], [[1]])
    with pytest.raises(InputError, match="sentence 0 has the new label 5"):
        model.log_likelihood([[1]], [[5]])


def test_names_of_functions():
    model = ncrf.FeatureCRF([[-1, 0]], [[]]).fit([[3, 4]], [[0, 1]])
    found = names(model._vocabulary, model._index, model.labels)
    assert found == [
        ("U[-1,0]:3,4", (1,)),
        ("U[-1,0]:_B-1,3", (0,)),
        ("Bhead[]", (0,)),
        ("Btail[]", (1,)),
        ("B", (0, 1)),
    ]
