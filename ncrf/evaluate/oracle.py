"""The oracle score: what n-best output would score if always the right labeling were chosen."""

from __future__ import annotations

from collections.abc import Sequence

from ncrf.data.schemes import PLAIN, spans


def best_labeling(
    gold: Sequence[str],
    labelings: Sequence[Sequence[str]],
    scheme: str,
    *,
    delimiter: str = "-",
    policy: str = "conlleval",
) -> Sequence[str]:
    """The labeling of a sentence that is most like gold; of equal ones the first.

    That is the one with the highest F1 of the sentence's spans, which is 1 where neither gold nor
    the labeling has any; for plain labels the one with the most right labels.
    """

    def right_labels(labeling: Sequence[str]) -> float:
        return sum(ours == theirs for ours, theirs in zip(gold, labeling, strict=True))

    def f1(labeling: Sequence[str]) -> float:
        found = set(spans(labeling, delimiter, scheme=scheme, policy=policy))
        total = len(wanted) + len(found)
        return 2 * len(wanted & found) / total if total else 1.0

    if scheme == PLAIN:
        return max(labelings, key=right_labels)
    wanted = set(spans(gold, delimiter, scheme=scheme, policy=policy))
    return max(labelings, key=f1)
