"""``decoder=mbr`` against the enumeration of all labelings."""

import itertools
import math
from collections import Counter

import pytest
import torch

from ncrf.data.columns import read_columns
from ncrf.data.label_tables import legal_transitions
from ncrf.data.schemes import spans
from ncrf.data.vocabulary import LabelScheme
from ncrf.decode.minimum_risk import MinimumRisk
from ncrf.errors import ConfigError
from ncrf.model.inference_layers import INFERENCE_LAYERS, Scores
from ncrf.tagger import Tagger
from tests.conftest import SAMPLE

LABELS = {
    "IOB2": ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"],
    "BIOES": ["O", "B-PER", "I-PER", "E-PER", "S-PER", "S-LOC"],
    "BMES": ["B", "M", "E", "S"],
    "plain": ["NN", "VB", "DT"],
}
LENGTHS = (5, 1, 3)
ROWS = range(len(LENGTHS))


def chain(scheme, seed, scale):
    """A CRF and the scores of three sentences, at random."""
    labels = LABELS[scheme]
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return scale * torch.randn(*shape, generator=generator, dtype=torch.double)

    inference = INFERENCE_LAYERS.get("CRF")(
        len(labels), "decode", legal_transitions(labels, scheme)
    ).double()
    for weights in inference.parameters():
        weights.requires_grad_(False).copy_(draw(*weights.shape))
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    scores = Scores(draw(*mask.shape, len(labels)), mask)
    risk = MinimumRisk(inference, labels, LabelScheme(scheme, scheme))
    return inference, scores, risk


def distribution(inference, scores, row, scheme):
    """All legal labelings of a sentence and their probabilities, by enumeration."""
    crf, legal = inference.crf, legal_transitions(LABELS[scheme], scheme)
    logs = {}
    for path in itertools.product(range(len(LABELS[scheme])), repeat=LENGTHS[row]):
        pairs = list(itertools.pairwise(path))
        if not (legal.start[path[0]] and legal.end[path[-1]]):
            continue
        if not all(legal.transition[pair] for pair in pairs):
            continue
        total = crf.start_transitions[path[0]] + crf.end_transitions[path[-1]]
        total = total + sum(scores.emissions[row, t, y] for t, y in enumerate(path))
        logs[path] = float(total + sum(crf.transitions[pair] for pair in pairs))
    log_z = torch.logsumexp(torch.tensor(list(logs.values()), dtype=torch.double), 0).item()
    return {
        path: torch.exp(torch.tensor(log - log_z, dtype=torch.double)).item()
        for path, log in logs.items()
    }


def spans_of(path, scheme):
    return set(spans([LABELS[scheme][y] for y in path], "-"))


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("scheme", ["IOB2", "BIOES", "BMES"])
def test_spans_above_one_half_and_no_others(scheme, seed, scale):
    inference, scores, risk = chain(scheme, seed, scale)
    with torch.inference_mode():
        found, known = risk.labelings(inference.posterior(scores))
        probabilities = inference.posterior(scores).log_prob(found).exp()
    for row in ROWS:
        paths = distribution(inference, scores, row, scheme)
        chosen = tuple(found[row, : LENGTHS[row]].tolist())
        assert probabilities[row].item() == pytest.approx(paths[chosen], rel=1e-9)
        totals = Counter()
        for path, probability in paths.items():
            for span in spans_of(path, scheme):
                totals[span] += probability
        likely = {span for span, total in totals.items() if total > 0.5}
        said = {tuple(span): p for (of, *span), p in known.items() if of == row}
        assert said == pytest.approx({(s.start, s.end, s.label): totals[s] for s in likely})
        if scheme != "BMES":
            assert spans_of(chosen, scheme) == likely
            continue
        # Every word is in a span: what is not likely is filled in as well as it can be.
        assert spans_of(chosen, scheme) >= likely
        agreeing = {p: q for p, q in paths.items() if spans_of(p, scheme) >= likely}
        assert paths[chosen] == pytest.approx(max(agreeing.values()), rel=1e-9)


@pytest.mark.parametrize("scheme", ["IOB2", "BIOES"])
def test_a_likely_span_is_not_made_longer_where_no_word_is_outside(scheme):
    """After two words of type A the third may go on, or begin one of seven less likely types."""
    types = "ABCDEFG"
    labels = [f"B-{t}" for t in types] + ["I-A"]
    if scheme == "BIOES":
        labels = ["B-A", "I-A", "E-A"] + [f"S-{t}" for t in types]
    inference = INFERENCE_LAYERS.get("CRF")(
        len(labels), "decode", legal_transitions(labels, scheme)
    )
    begun, going_on = labels.index("B-A"), labels.index("I-A")
    emissions = torch.full((1, 3, len(labels)), -0.5)
    emissions[0, 0, begun] = 20.0
    emissions[0, 1, [going_on] if scheme == "IOB2" else [going_on, labels.index("E-A")]] = 20.0
    emissions[0, 2, going_on if scheme == "IOB2" else labels.index("E-A")] = 0.0
    posterior = inference.posterior(Scores(emissions, torch.ones(1, 3, dtype=torch.bool)))
    risk = MinimumRisk(inference, labels, LabelScheme(scheme, scheme))
    found, known = risk.labelings(posterior)
    share = 7 * math.exp(-0.5)
    assert known == pytest.approx({(0, 0, 2, "A"): share / (1 + share)})
    assert (0, 2, "A") in {
        (span.start, span.end, span.label)
        for span in spans([labels[y] for y in found[0].tolist()], "-")
    }


@pytest.mark.parametrize("seed", range(5))
def test_expected_errors_are_fewest(seed):
    """No labeling has fewer expected wrong and missing entities."""
    inference, scores, risk = chain("BIOES", seed, 1.0)
    with torch.inference_mode():
        found, _ = risk.labelings(inference.posterior(scores))
    for row in ROWS:
        paths = distribution(inference, scores, row, "BIOES")

        def errors(path, paths=paths):
            mine = spans_of(path, "BIOES")
            return sum(q * len(mine ^ spans_of(other, "BIOES")) for other, q in paths.items())

        fewest = min(map(errors, paths))
        assert errors(tuple(found[row, : LENGTHS[row]].tolist())) == pytest.approx(fewest)


@pytest.mark.parametrize("threshold", [0.05, 0.2, 0.4, 0.7])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("scheme", ["IOB2", "BIOES"])
def test_a_threshold_weighs_wrong_entities_against_missing_ones(scheme, seed, threshold):
    """No labeling has less expected risk: t for a wrong entity, 1 - t for a missing one."""
    inference, scores, _ = chain(scheme, seed, 1.0)
    risk = MinimumRisk(inference, LABELS[scheme], LabelScheme(scheme, scheme), threshold)
    with torch.inference_mode():
        found, known = risk.labelings(inference.posterior(scores))
    for row in ROWS:
        paths = distribution(inference, scores, row, scheme)
        totals = Counter()
        for path, probability in paths.items():
            for span in spans_of(path, scheme):
                totals[span] += probability

        def expected(path, paths=paths):
            mine = spans_of(path, scheme)
            return sum(
                q * (threshold * len(mine - other) + (1 - threshold) * len(other - mine))
                for other, q in ((spans_of(path, scheme), q) for path, q in paths.items())
            )

        chosen = tuple(found[row, : LENGTHS[row]].tolist())
        assert expected(chosen) == pytest.approx(min(map(expected, paths)))
        said = {tuple(span): p for (of, *span), p in known.items() if of == row}
        kept = spans_of(chosen, scheme)
        assert said == pytest.approx({(s.start, s.end, s.label): totals[s] for s in kept})


def test_a_lower_threshold_finds_entities_that_a_higher_one_does_not(trained):
    sentences = [sentence.words for sentence in read_columns(SAMPLE / "dev.bioes")]
    found = {}
    for threshold in (0.1, 0.5, 0.9):
        tagger = Tagger.load(trained, decoder="mbr", mbr_threshold=threshold)
        found[threshold] = [span for p in tagger.predict(sentences) for span in p.spans]
        assert all(span.probability > threshold for span in found[threshold])
    assert len(found[0.1]) > len(found[0.5]) > len(found[0.9])


@pytest.mark.parametrize("seed", range(3))
def test_plain_labels_are_the_likeliest_of_each_word(seed):
    inference, scores, risk = chain("plain", seed, 1.0)
    with torch.inference_mode():
        found, _ = risk.labelings(inference.posterior(scores))
    for row in ROWS:
        paths = distribution(inference, scores, row, "plain")
        for t in range(LENGTHS[row]):
            masses = Counter()
            for path, probability in paths.items():
                masses[path[t]] += probability
            assert found[row, t].item() == masses.most_common(1)[0][0]


def test_through_the_tagger(trained):
    """Spans and labels agree, every span is likely, and no likely one of the n best is missing."""
    tagger = Tagger.load(trained, decoder="mbr")
    texts = ("Anna Berg met Bo Lind in Oslo .", "Oslo", "the old bank")
    sentences = [text.split() for text in texts]
    plain = Tagger.load(trained)
    pairs = zip(tagger.predict(sentences), plain.predict(sentences, nbest=50), strict=True)
    for found, best in pairs:
        assert all(span.probability > 0.5 for span in found.spans)
        labelings = [tuple(labeling.labels) for labeling in best.nbest]
        if tuple(found.labels) in labelings:
            same = best.nbest[labelings.index(tuple(found.labels))]
            assert found.probability == pytest.approx(same.probability, rel=1e-5)
        mass = Counter()
        for labeling in best.nbest:
            for span in spans(labeling.labels, "-"):
                mass[span.start, span.end, span.label] += labeling.probability
        kept = {(span.start, span.end, span.label) for span in found.spans}
        assert {span for span, total in mass.items() if total > 0.5} <= kept


def test_scores_are_those_of_what_is_predicted(trained):
    """The score of a corpus, as training asks for it on dev, is that of the same labelings."""
    tagger = Tagger.load(trained, decoder="mbr")
    gold = list(read_columns(SAMPLE / "dev.bioes"))
    predicted = [found.labels for found in tagger.predict([s.words for s in gold])]
    mine = [set(spans(labels, "-")) for labels in predicted]
    right = [set(spans(s.labels, "-")) for s in gold]
    correct = sum(len(a & b) for a, b in zip(mine, right, strict=True))
    score = tagger.evaluate(SAMPLE / "dev.bioes")
    assert score.f1 == pytest.approx(2 * correct / sum(map(len, mine + right)))
    viterbi = [found.labels for found in Tagger.load(trained).predict([s.words for s in gold])]
    assert predicted != viterbi  # so that this can tell one decoder from the other


def test_the_n_best_are_still_the_most_probable(trained):
    sentence = [["Anna", "Berg", "met", "Bo", "Lind", "in", "Oslo", "."]]
    ours = Tagger.load(trained, decoder="mbr").predict(sentence, nbest=3)
    assert ours[0].nbest == Tagger.load(trained).predict(sentence, nbest=3)[0].nbest


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"constraints": "none"}, "constraints=none"),
        ({"mbr_threshold": 0}, "mbr_threshold=0"),
        ({"mbr_threshold": 1}, "mbr_threshold=1"),
        ({"forced_labels": True}, "forced_labels=True"),
    ],
)
def test_what_does_not_go_together(trained, keys, message):
    with pytest.raises(ConfigError, match=message):
        Tagger.load(trained, decoder="mbr", **keys)


@pytest.mark.parametrize("seed", range(10))
def test_what_is_as_probable_as_the_threshold_is_taken_alike_in_every_batch(seed):
    """Without any scores many spans have a probability of just one half; with a few, some do."""
    labels = ["B-X", "I-X", "E-X", "S-X"]
    inference = INFERENCE_LAYERS.get("CRF")(4, "decode", legal_transitions(labels, "BIOES"))
    risk = MinimumRisk(inference, labels, LabelScheme("BIOES", "BIOES"))
    generator = torch.Generator().manual_seed(seed)
    emissions = torch.randint(0, 2, (1, 4, 4), generator=generator).float() * (seed > 0)
    found = []
    for copies in (1, 2):
        scores = Scores(emissions.repeat(copies, 1, 1), torch.ones(copies, 4, dtype=torch.bool))
        found.append(risk.labelings(inference.posterior(scores))[0][0].tolist())
    assert found[0] == found[1]
