"""Span probabilities against enumeration."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ncrf.crf import LinearChainCRF, RowError, SpanMasks, span_probability
from tests.crf.oracle import Case, cases, close, make_case

MANY = settings(max_examples=60)
O, B, I = range(3)  # noqa: E741
IOB2 = SpanMasks(
    begin=[[[False, True, False]] * 3],
    begin_first=[[False, True, False]],
    inside=[[[False, False, False], [False, False, True], [False, False, True]]],
    end=[[[False] * 3, [True, True, False], [True, True, False]]],
    end_last=[[False, True, True]],
)


def every_span(case: Case) -> list[tuple[int, int, int]]:
    """Rows, starts and ends of all spans of all rows."""
    return [
        (b, s, e)
        for b, length in enumerate(case.mask.sum(1).tolist())
        for s in range(length)
        for e in range(s + 1, length + 1)
    ]


def has_span(masks: SpanMasks, k: int, labels: list[int], s: int, e: int) -> bool:
    first = masks.begin_first[k][labels[0]] if s == 0 else masks.begin[k][labels[s - 1]][labels[s]]
    within = all(masks.inside[k][labels[t - 1]][labels[t]] for t in range(s + 1, e))
    if e == len(labels):
        return bool(first and within and masks.end_last[k][labels[-1]])
    return bool(first and within and masks.end[k][labels[e - 1]][labels[e]])


@MANY
@given(cases(), st.integers(0, 1000))
def test_any_masks(case: Case, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    labels = case.num_labels

    def random(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator) < 0.7

    pairs, single = (2, labels, labels), (2, labels)
    masks = SpanMasks(
        random(*pairs), random(*single), random(*pairs), random(*pairs), random(*single)
    )
    spans = every_span(case)
    rows, starts, ends = (list(x) for x in zip(*spans, strict=True)) if spans else ([], [], [])
    types = [(r + s + e) % 2 for r, s, e in spans]
    found = span_probability(
        *case.inputs, rows=rows, starts=starts, ends=ends, types=types, masks=masks
    )
    assert found.shape == (len(spans),)
    all_rows = case.rows()
    for p, (b, s, e), k in zip(found, spans, types, strict=True):
        paths, probabilities = all_rows[b].paths.tolist(), all_rows[b].probabilities()
        hits = torch.tensor([has_span(masks, k, labels, s, e) for labels in paths])
        assert close(p, probabilities[hits].sum(), 1e-8)


def read_iob2(labels: list[int]) -> set[tuple[int, int]]:
    spans: set[tuple[int, int]] = set()
    begun: int | None = None
    for t, label in enumerate([*labels, O]):
        if begun is not None and label != I:
            spans.add((begun, t))
            begun = None
        if label == B:
            begun = t
    return spans


def test_iob2_spans() -> None:
    case = make_case(1, batch=3, width=5, labels=3)
    spans = every_span(case)
    rows, starts, ends = (list(x) for x in zip(*spans, strict=True))
    found = span_probability(
        *case.inputs, rows=rows, starts=starts, ends=ends, types=[0] * len(rows), masks=IOB2
    )
    for p, (b, s, e) in zip(found, spans, strict=True):
        row = case.rows()[b]
        has = torch.tensor([(s, e) in read_iob2(labels) for labels in row.paths.tolist()])
        assert close(p, row.probabilities()[has].sum(), 1e-9)


def test_gradient() -> None:
    case = make_case(2, batch=2, width=4, labels=3, mask="full").leaves()

    def probabilities(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Tensor:
        scores = (emissions, transitions, start, end, case.mask)
        places: Any = {"rows": [0, 1, 1], "starts": [0, 1, 2], "ends": [2, 3, 4]}
        return span_probability(*scores, **places, types=[0] * 3, masks=IOB2)

    assert torch.autograd.gradcheck(probabilities, case.scores)


def test_no_spans() -> None:
    case = make_case(3)
    found = span_probability(*case.inputs, rows=[], starts=[], ends=[], types=[], masks=IOB2)
    assert found.shape == (0,)


def test_many_spans_take_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case(4, mask="full")
    spans = every_span(case)
    rows, starts, ends = (list(x) for x in zip(*spans, strict=True))
    places: Any = {"rows": rows, "starts": starts, "ends": ends, "types": [0] * len(rows)}
    expected = span_probability(*case.inputs, **places, masks=IOB2)
    monkeypatch.setattr("ncrf.crf.spans._BLOCK", 40)
    assert torch.equal(span_probability(*case.inputs, **places, masks=IOB2), expected)


@pytest.mark.parametrize(("start", "end"), [(2, 2), (-1, 1), (1, 4), (3, 2)])
def test_a_span_that_is_not_in_its_row(start: int, end: int) -> None:
    crf = LinearChainCRF(3)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    with pytest.raises(RowError, match=f"row 1, position {start}") as raised:
        crf.span_probability(
            torch.zeros(2, 5, 3),
            mask,
            rows=[0, 1],
            starts=[0, start],
            ends=[5, end],
            types=[0, 0],
            masks=IOB2,
        )
    assert (raised.value.row, raised.value.position) == (1, start)


def test_masks_and_places_that_do_not_fit() -> None:
    crf = LinearChainCRF(4)
    places: Any = {"rows": [0], "starts": [0], "ends": [1], "types": [0]}
    with pytest.raises(ValueError, match="begin"):
        crf.span_probability(torch.zeros(1, 2, 4), **places, masks=IOB2)
    crf = LinearChainCRF(3)
    for change in ({"types": [1]}, {"rows": [1]}, {"starts": [0, 1]}):
        with pytest.raises(ValueError, match=r"rows|types"):
            crf.span_probability(torch.zeros(1, 2, 3), **{**places, **change}, masks=IOB2)
