"""ncrf.sklearn.CRF against the enumeration of all labelings, and in scikit-learn's hands."""

import itertools
import math
import subprocess
import sys
from collections import Counter

import joblib
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate

from ncrf.errors import InputError
from ncrf.sklearn import CRF
from tests.template_oracle import log_likelihood

X = [
    [{"w": "a", "bias": 1.0}, {"w": "b", "title": True, "n": 0.5}, {"w": "c"}],
    [{"w": "a", "bias": 1.0}, {"w": "b", "title": False, "n": 2}, {"w": "c"}],
    [{"w": "c", "suffix": ["x", "yx"]}, {"w": "a", "deep": {"q": 2.0, "r": "s"}}],
    [{"w": "c"}, ["w:a", "bias"]],
    [],
    [{"w": "b"}],
]
Y = [["X", "Y", "Z"], ["X", "Z", "Z"], ["Y", "X"], ["Z", "X"], [], ["Y"]]
# The attributes of X as python-crfsuite's documentation has them.
ATTRIBUTES = [
    [{"w:a": 1, "bias": 1}, {"w:b": 1, "title": 1, "n": 0.5}, {"w:c": 1}],
    [{"w:a": 1, "bias": 1}, {"w:b": 1, "title": 0, "n": 2}, {"w:c": 1}],
    [{"w:c": 1, "suffix:x": 1, "suffix:yx": 1}, {"w:a": 1, "deep:q": 2, "deep:r:s": 1}],
    [{"w:c": 1}, {"w:a": 1, "bias": 1}],
    [],
    [{"w:b": 1}],
]


def features(words, labels):
    found = Counter()
    for attributes, label in zip(words, labels, strict=True):
        for name, value in attributes.items():
            found[name, label] += value
    for pair in itertools.pairwise(labels):
        found[pair] += 1
    return found


def seen():
    found = Counter()
    for words, labels in zip(ATTRIBUTES, Y, strict=True):
        for key, count in features(words, labels).items():
            found[key] += count
    return found


def probabilities(crf, words):
    """P(labeling) of all labelings of a sentence by the weights that the estimator shows."""
    weights = {**crf.state_features_, **crf.transition_features_}
    scores = {}
    for labels in itertools.product("XYZ", repeat=len(words)):
        counts = features(words, labels)
        scores[labels] = sum(weights.get(key, 0) * n for key, n in counts.items())
    total = sum(map(math.exp, scores.values()))
    return {labels: math.exp(score) / total for labels, score in scores.items()}


@pytest.mark.parametrize("c2", [0.05, None])
def test_the_likelihood_is_that_of_scipy(c2):
    keys = list(seen())
    penalty = 1.0 if c2 is None else c2

    def objective(weights):
        of = dict(zip(keys, weights.tolist(), strict=True))

        def score(words, labels):
            counts = features(words, labels)
            return sum(of.get(key, 0) * n for key, n in counts.items()), counts

        total, slope = log_likelihood(score, zip(ATTRIBUTES, Y, strict=True), "XYZ")
        gradient = 2 * penalty * weights - np.array([slope[key] for key in keys])
        return penalty * (weights @ weights) - total, gradient

    best = minimize(objective, np.zeros(len(keys)), jac=True, method="BFGS")
    crf = CRF(c2=c2, delta=1e-9).fit(X, Y)
    assert crf.classes_ == ["X", "Y", "Z"]
    found = {**crf.state_features_, **crf.transition_features_}
    assert set(found) == set(keys)
    assert objective(np.array([found[key] for key in keys]))[0] == pytest.approx(best.fun, abs=1e-4)
    for key, weight in zip(keys, best.x.tolist(), strict=True):
        assert found[key] == pytest.approx(weight, abs=1e-2)


@pytest.mark.parametrize("every", [False, True])
def test_labels_and_marginals_are_those_of_the_enumeration(every):
    crf = CRF(c2=0.1, all_possible_states=every, all_possible_transitions=every).fit(X, Y)
    marginals = crf.predict_marginals(X)
    for words, given, labels, rows in zip(ATTRIBUTES, X, crf.predict(X), marginals, strict=True):
        chances = probabilities(crf, words)
        assert tuple(labels) == max(chances, key=chances.get)
        assert crf.predict_single(given) == labels
        assert len(rows) == len(words)
        for t, row in enumerate(rows):
            for label in "XYZ":
                expected = sum(p for y, p in chances.items() if y[t] == label)
                assert row[label] == pytest.approx(expected, abs=1e-5)
    single = crf.predict_marginals_single(X[0])
    assert [pytest.approx(row, abs=1e-12) for row in single] == marginals[0]
    right = sum(a == b for x, y in zip(crf.predict(X), Y, strict=True) for a, b in zip(x, y))  # noqa: B905
    assert crf.score(X, Y) == pytest.approx(right / 11)


def test_which_features_have_a_weight():
    labels, attributes = "XYZ", {name for words in ATTRIBUTES for word in words for name in word}
    crf = CRF(max_iterations=1, all_possible_states=True).fit(X, Y)
    assert set(crf.state_features_) == set(itertools.product(attributes, labels))
    assert set(crf.attributes_) == attributes
    crf = CRF(max_iterations=1, all_possible_transitions=True).fit(X, Y)
    assert set(crf.transition_features_) == set(itertools.product(labels, labels))
    crf = CRF(max_iterations=1, min_freq=2).fit(X, Y)
    often = {key for key, count in seen().items() if count >= 2}
    assert {*crf.state_features_, *crf.transition_features_} == often
    assert ("w:b", "Y") in often and ("n", "Z") in often
    assert crf.predict(X)[4] == []


def test_the_first_iterations_under_l1():
    crf = CRF(c1=1.0, c2=0.0).fit(X, Y)
    weights = list({**crf.state_features_, **crf.transition_features_}.values())
    assert 0 < sum(w != 0 for w in weights) < len(weights)
    objectives = [record.objective for record in crf.training_log_]
    assert all(later <= before for before, later in itertools.pairwise(objectives))


def corpus(size):
    rng = np.random.default_rng(3)
    sentences, labels = [], []
    for length in rng.integers(1, 7, size).tolist():
        words = rng.choice(list("abcd"), length).tolist()
        sentences.append([{"w": w, "before": b} for b, w in zip(["^", *words], words)])  # noqa: B905
        labels.append(["up" if b < w else "down" for b, w in zip(["^", *words], words)])  # noqa: B905
    return sentences, labels


def test_as_scikit_learn_uses_it():
    sentences, labels = corpus(40)
    crf = CRF(c2=0.01, max_iterations=12)
    assert clone(crf).get_params() == crf.get_params()
    assert crf.set_params(c1=0.01) is crf
    assert crf.get_params()["c1"] == 0.01
    scores = cross_validate(crf, sentences, labels, cv=2, return_train_score=True)
    assert scores["test_score"].min() > 0.8
    assert "classes_" not in vars(crf)
    search = GridSearchCV(crf, {"c2": [0.01, 1e4]}, cv=2).fit(sentences, labels)
    assert search.best_params_ == {"c2": 0.01}


def test_copies(tmp_path):
    sentences, labels = corpus(30)
    crf = CRF().fit(sentences, labels)
    joblib.dump(crf, tmp_path / "crf")
    again = joblib.load(tmp_path / "crf")
    assert again.predict_marginals(sentences) == crf.predict_marginals(sentences)
    refitted = clone(crf).fit(sentences, labels)
    assert refitted.state_features_ == crf.state_features_
    with pytest.raises(NotFittedError, match="call fit"):
        clone(crf).predict(sentences)


def test_threads_and_logging(caplog):
    sentences, labels = corpus(150)
    one = CRF(max_iterations=5).fit(sentences, labels)
    with caplog.at_level("INFO", "ncrf.sklearn"):
        two = CRF(max_iterations=5, n_jobs=2, verbose=True).fit(
            sentences, labels, sentences[:5], labels[:5]
        )
    assert len(caplog.messages) == 5
    assert "dev accuracy" in caplog.messages[-1]
    assert two.state_features_ == pytest.approx(one.state_features_, abs=1e-3)
    assert CRF(n_jobs=-1, max_iterations=1).fit(sentences, labels).score(sentences, labels) > 0.4


def test_every_parameter_of_sklearn_crfsuite_is_there():
    # sklearn_crfsuite.CRF.__init__, in its order.
    names = """
        algorithm min_freq all_possible_states all_possible_transitions c1 c2 max_iterations
        num_memories epsilon period delta linesearch max_linesearch calibration_eta calibration_rate
        calibration_samples calibration_candidates calibration_max_trials pa_type c error_sensitive
        averaging variance gamma verbose model_filename keep_tempfiles trainer_cls
    """
    assert set(CRF().get_params()) == {*names.split(), "n_jobs"}
    assert CRF("lbfgs", 2).min_freq == 2


def test_mistakes_are_named():
    for options, text in (
        ({"algorithm": "arow"}, r"algorithm is 'arow' \(there is only lbfgs\)"),
        ({"model_filename": "m"}, "model_filename is 'm'"),
        ({"c1": -1}, r"c1 is -1 \(0 or more\)"),
        ({"c2": float("nan")}, r"c2 is nan \(0 or more\)"),
        ({"num_memories": 0}, r"num_memories is 0 \(1 or more\)"),
        ({"n_jobs": 0}, "n_jobs is 0"),
    ):
        with pytest.raises(InputError, match=text):
            CRF(**options).fit(X, Y)
    with pytest.raises(InputError, match="X has 6 sentences, y has 1"):
        CRF().fit(X, [["X"]])
    with pytest.raises(InputError, match="sentence 1 has 1 words, but 2 labels"):
        CRF().fit([[], [{"a": 1}]], [[], ["X", "Y"]])
    with pytest.raises(InputError, match="no words"):
        CRF().fit([[]], [[]])
    with pytest.raises(InputError, match="sentence 0, word 1: "):
        CRF().fit([[{"a": 1}, {"a": None}]], [["X", "Y"]])
    crf = CRF(max_iterations=1).fit(X, Y)
    with pytest.raises(InputError, match="no words to score"):
        crf.score([], [])


def test_without_scikit_learn():
    code = "import sys; sys.modules['sklearn'] = None; import ncrf.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ncrf.sklearn needs scikit-learn (pip install 'ncrf[skl")
    code = "import sys, ncrf.sklearn; assert 'torch' not in sys.modules"
    assert not subprocess.run([sys.executable, "-c", code]).returncode
