"""What decoding says of a sentence, and what a caller may ask for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PredictedSpan:
    """A predicted entity: type, place in tokens (``end`` exclusive), words, probability.

    ``probability`` is the total probability of the labelings that have exactly this entity.
    """

    label: str
    start: int
    end: int
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class Labeling:
    """One labeling of a sentence and its probability given the words."""

    labels: list[str]
    probability: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says of a sentence.

    ``labels`` is the best labeling and ``probability`` its P(labels | words); ``marginals``
    holds P of the printed label at each word, if asked for; ``nbest`` the best labelings, best
    first, if asked for.
    """

    tokens: list[str]
    labels: list[str]
    probability: float
    spans: list[PredictedSpan]
    marginals: list[float] | None = None
    nbest: list[Labeling] | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a caller wants to know beside the labels; what is not asked for is not computed."""

    nbest: int | None = None
    marginals: bool = False
    probability: bool = True
    spans: bool = True
