"""Boundary against type errors: cases by hand, and the definition taken literally."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncrf.data.labels import Span
from ncrf.evaluate.entity_errors import KINDS, EntityErrors, Meeting, meetings


def entities(text):
    """``PER 0 2, LOC 3 4`` → spans."""
    cells = [part.split() for part in text.split(",") if part.strip()]
    return [Span(label, int(start), int(end)) for label, start, end in cells]


CASES = {
    "right": ("PER 0 2", "PER 0 2", ["right"]),
    "another type": ("PER 0 2", "LOC 0 2", ["type"]),
    "too short": ("PER 0 2", "PER 0 1", ["boundary"]),
    "both wrong": ("PER 0 2", "LOC 1 3", ["both"]),
    "missed": ("PER 0 2", "", ["missed"]),
    "spurious": ("", "PER 0 2", ["spurious"]),
    "neighbours do not overlap": ("PER 0 2", "PER 2 3", ["missed", "spurious"]),
    "one gold, two predicted": ("ORG 0 3", "ORG 0 1, LOC 2 3", ["boundary", "spurious"]),
    "type before words": ("ORG 0 3", "LOC 0 2, ORG 2 3", ["boundary", "spurious"]),
    "the first of equals": ("ORG 0 3", "ORG 0 1, ORG 2 3", ["boundary", "spurious"]),
    "two gold, one predicted": ("A 0 1, A 1 2", "A 0 2", ["boundary", "missed"]),
    # The second pair is not the best for its gold entity: that one's other partner is taken.
    "a chain": ("A 0 2, A 3 5", "A 1 4, B 4 5", ["boundary", "both"]),
    "same words, though another type overlaps more": (
        "A 0 1, B 1 4",
        "B 0 1, A 1 3",
        ["type", "both"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_by_hand(case):
    gold, predicted, kinds = CASES[case]
    found = meetings(entities(gold), entities(predicted))
    assert [meeting.kind for meeting in found] == kinds


@pytest.mark.parametrize(
    ("predicted", "partner"),
    [
        ("LOC 0 2, ORG 2 3", 1),  # the same type goes before more words
        ("ORG 0 1, ORG 1 3", 1),  # more words
        ("ORG 0 1, ORG 2 3", 0),  # the first of equals
        ("LOC 0 1, LOC 1 3", 1),
    ],
)
def test_the_better_partner(predicted, partner):
    gold, found = entities("ORG 0 3"), entities(predicted)
    (meeting,) = [m for m in meetings(gold, found) if m.gold]
    assert meeting.predicted == found[partner]


def test_who_met_whom():
    gold, predicted = entities("A 0 2, A 3 5, C 6 7"), entities("A 1 4, B 4 5, C 6 7")
    assert meetings(gold, predicted) == [
        Meeting(gold[0], predicted[0]),
        Meeting(gold[1], predicted[1]),
        Meeting(gold[2], predicted[2]),
    ]


def test_counts():
    errors = EntityErrors()
    errors.add(entities("A 0 3, B 4 5"), entities("A 0 1, A 2 3, B 4 5, C 6 7"))
    errors.add(entities("B 0 1"), [])
    assert {kind: errors.of_kind(kind) for kind in KINDS} == {
        "right": 1,
        "type": 0,
        "boundary": 1,
        "both": 0,
        "missed": 1,
        "spurious": 2,
    }
    assert errors.counts["boundary", "A"] == errors.counts["spurious", "A"] == 1
    assert errors.counts["spurious", "C"] == errors.counts["missed", "B"] == 1
    assert (errors.overlapping["spurious"], errors.overlapping["missed"]) == (1, 0)
    assert errors.types == ["A", "B", "C"]


def words_of(span):
    return set(range(span.start, span.end))


def better(one, other):
    """Whether a candidate goes before another one, rule by rule."""
    for rule in (
        lambda g, p: words_of(g) == words_of(p),
        lambda g, p: g.label == p.label,
        lambda g, p: len(words_of(g) & words_of(p)),
        lambda g, p: -g.start,
        lambda g, p: -p.start,
    ):
        if rule(*one) != rule(*other):
            return rule(*one) > rule(*other)
    raise AssertionError(f"{one} and {other} are equal")


def literally(gold, predicted):
    """The pairs of the definition: the best of all free candidates, again and again."""
    pairs, free_gold, free_predicted = set(), list(gold), list(predicted)
    while True:
        candidates = [
            (g, p) for g in free_gold for p in free_predicted if words_of(g) & words_of(p)
        ]
        if not candidates:
            alone = {(g, None) for g in free_gold} | {(None, p) for p in free_predicted}
            return pairs | alone
        best = candidates[0]
        for candidate in candidates[1:]:
            if better(candidate, best):
                best = candidate
        pairs.add(best)
        free_gold.remove(best[0])
        free_predicted.remove(best[1])


@st.composite
def sides(draw):
    """Entities of one side of a sentence: in order, not overlapping."""
    found, place = [], 0
    for gap, length, label in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from("AB")), max_size=6)
    ):
        found.append(Span(label, place + gap, place + gap + length))
        place += gap + length
    return found


@given(sides(), sides())
def test_the_definition_taken_literally(gold, predicted):
    found = meetings(gold, predicted)
    assert {tuple(meeting) for meeting in found} == literally(gold, predicted)
    assert sorted((m.gold for m in found if m.gold), key=lambda x: x.start) == gold  # each once
    assert sorted((m.predicted for m in found if m.predicted), key=lambda x: x.start) == predicted


@given(sides(), sides())
def test_the_two_sides_are_alike(gold, predicted):
    """Exchanging gold and predicted exchanges missed and spurious, and keeps the number of pairs
    of the same words."""
    here = [m.kind for m in meetings(gold, predicted)]
    there = [m.kind for m in meetings(predicted, gold)]
    assert here.count("right") == there.count("right")
    assert here.count("type") == there.count("type")


@given(sides(), sides())
def test_what_is_alone_and_overlaps(gold, predicted):
    errors = EntityErrors()
    found = errors.add(gold, predicted)
    for kind, own, others in (("missed", 0, predicted), ("spurious", 1, gold)):
        touching = [
            m
            for m in found
            if m.kind == kind and any(words_of(m[own]) & words_of(x) for x in others)
        ]
        assert errors.overlapping[kind] == len(touching)
