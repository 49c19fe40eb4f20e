"""What ``mbr_threshold`` would do: the scores of all entities above each of several thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from ncrf.data.columns import Sentence
from ncrf.data.labels import mark
from ncrf.data.schemes import Span, spans
from ncrf.decode.minimum_risk import without_overlap
from ncrf.decode.predict import Predictor
from ncrf.evaluate.pairing import labels_of
from ncrf.evaluate.spans import TypeScore

THRESHOLDS = tuple(round(0.1 * tenth, 1) for tenth in range(1, 10))


def scores_by_threshold(
    predictor: Predictor, sentences: Sequence[Sentence]
) -> dict[str, TypeScore]:
    """The score of ``decoder=mbr`` by threshold, ``"0.1"`` to ``"0.9"``, on labelled sentences.

    Their labels are in the model's scheme. Nothing where labels mark no entities, where they need
    not keep to a scheme (``constraints=none``), and where every word is in an entity.
    """
    scheme, keys = predictor.vocabulary.scheme, predictor.config.inference
    labels = predictor.vocabulary.labels.strings
    everywhere = all(mark(label, scheme.delimiter).inside for label in labels)
    if not predictor.by_spans or keys.constraints == "none" or everywhere:
        return {}
    gold = {
        (number, *span)
        for number, sentence in enumerate(sentences)
        if not sentence.boundary
        for span in spans(
            labels_of(sentence), scheme.delimiter, scheme=scheme.target, policy=keys.score_policy
        )
    }
    above = predictor.entities_above(sentences, THRESHOLDS[0])
    scores = {}
    for threshold in THRESHOLDS:
        kept = {span: p for span, p in above.items() if p > threshold}
        found = {
            (number, *Span(label, start, end))
            for number, start, end, label in without_overlap(kept, threshold)
        }
        scores[f"{threshold:.1f}"] = TypeScore(len(gold), len(found), len(gold & found))
    return scores
