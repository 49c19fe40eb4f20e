"""One row by itself: the numbers of the enumeration, and those of the same row in a batch."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ncrf.crf import NoLabelingError, Posterior, RowError, SpanMasks
from ncrf.crf.chain import prepare
from ncrf.crf.one_row import OneRow
from tests.crf.oracle import Case, Row, make_case

MANY = settings(max_examples=80)
SHAPES = [(2, 3, 3), (2, 3), (2, 3, 3), (2, 3, 3), (2, 3)]


def random_masks(labels: int, seed: int) -> SpanMasks:
    generator = torch.Generator().manual_seed(seed)
    pairs, single = (2, labels, labels), (2, labels)
    shapes = (pairs, single, pairs, pairs, single)
    return SpanMasks(*(torch.rand(shape, generator=generator) < 0.8 for shape in shapes))


def has_span(masks: SpanMasks, k: int, labels: list[int], s: int, e: int) -> bool:
    first = masks.begin_first[k][labels[0]] if s == 0 else masks.begin[k][labels[s - 1], labels[s]]
    within = all(masks.inside[k][labels[t - 1], labels[t]] for t in range(s + 1, e))
    if e == len(labels):
        return bool(first and within and masks.end_last[k][labels[-1]])
    return bool(first and within and masks.end[k][labels[e - 1], labels[e]])


def one_row(seed: int, width: int, labels: int, **options: Any) -> tuple[Case, Row]:
    case = make_case(seed, 1, width, labels, mask="full", **options)
    return case, Row(case, 0)


def only_short(case: Case) -> Posterior:
    """The row's posterior, sure to be computed by what is tested here."""
    posterior = Posterior(*case.inputs)
    assert posterior._row is not None
    return posterior


@MANY
@given(
    st.integers(0, 10_000),
    st.integers(1, 5),
    st.integers(1, 4),
    st.sampled_from([1.0, 5.0]),
    st.sampled_from([0.0, 0.2]),
)
def test_enumeration(seed: int, width: int, labels: int, scale: float, forbidden: float) -> None:
    case, row = one_row(seed, width, labels, scale=scale, forbidden=forbidden)
    posterior = only_short(case)
    probabilities = row.probabilities()
    torch.testing.assert_close(posterior.marginals()[0], row.marginals())
    best = posterior.viterbi()
    torch.testing.assert_close(best.scores[0], row.scores().max())
    assert probabilities[row.place(best.labels[0])].item() == pytest.approx(probabilities.max())
    found = posterior.nbest(1)
    assert found.labels[0, 0].tolist() == best.labels[0].tolist()
    assert found.log_probabilities.exp().item() == pytest.approx(probabilities.max().item())
    assert found.log_probabilities.shape == (1, 1) and found.counts.tolist() == [1]
    torch.testing.assert_close(posterior.log_prob(best.labels), found.log_probabilities[0])
    masks = random_masks(labels, seed)
    spans = [(s, e, k) for s in range(width) for e in range(s + 1, width + 1) for k in range(2)]
    starts, ends, types = zip(*spans, strict=True)
    ours = posterior.span_probability(
        rows=[0] * len(spans), starts=starts, ends=ends, types=types, masks=masks
    )
    for p, (s, e, k) in zip(ours.tolist(), spans, strict=True):
        having = [has_span(masks, k, path, s, e) for path in row.paths.tolist()]
        assert p == pytest.approx(float(probabilities[torch.tensor(having)].sum()), abs=1e-12)


@pytest.mark.parametrize("labels", [1, 2, 17])
@pytest.mark.parametrize("length", [1, 2, 40, 100])
def test_the_same_row_in_a_batch(labels: int, length: int) -> None:
    case, _ = one_row(length, length, labels, scale=4.0 if length < 100 else 1.0)
    scores = [x.float() for x in case.scores]
    alone = Posterior(*scores)
    assert alone._row is not None
    batch = Posterior(torch.cat([scores[0], torch.zeros_like(scores[0])]), *scores[1:])
    assert batch._row is None
    torch.testing.assert_close(alone.marginals(), batch.marginals()[:1])
    for ours, theirs in zip(alone.nbest(1), batch.nbest(1), strict=True):
        torch.testing.assert_close(ours, theirs[:1])
    for ours, theirs in zip(alone.viterbi(), batch.viterbi(), strict=True):
        torch.testing.assert_close(ours, theirs[:1])
    for n in (2, 5):
        for ours, theirs in zip(alone.nbest(n), batch.nbest(n), strict=True):
            torch.testing.assert_close(ours, theirs[:1])


@MANY
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 5))
def test_of_equally_good_labelings_the_one_that_a_batch_takes(
    seed: int, width: int, labels: int
) -> None:
    generator = torch.Generator().manual_seed(seed)

    def whole(*shape: int) -> Tensor:
        return torch.randint(-1, 2, shape, generator=generator).float()

    emissions = whole(1, width, labels)
    scores = whole(labels, labels), whole(labels), whole(labels)
    alone, batch = Posterior(emissions, *scores), Posterior(emissions.repeat(2, 1, 1), *scores)
    assert alone._row is not None
    assert alone.viterbi().labels.tolist() == batch.viterbi().labels[:1].tolist()


@MANY
@given(st.integers(0, 10_000), st.sampled_from([50.0, 200.0, 700.0, 3000.0]))
def test_numbers_beyond_its_range_are_left_to_the_batch(seed: int, scale: float) -> None:
    case, row = one_row(seed, 4, 3, scale=scale, forbidden=0.1)
    posterior = Posterior(*case.inputs)
    torch.testing.assert_close(posterior.marginals()[0], row.marginals(), atol=1e-9, rtol=0)
    found = posterior.nbest(1)
    torch.testing.assert_close(found.log_probabilities[0, 0], row.probabilities().max().log())


@MANY
@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 4))
def test_within_allowed_labels(seed: int, width: int, labels: int) -> None:
    case, _ = one_row(seed, width, labels)
    allowed = torch.rand(1, width, labels, generator=torch.Generator().manual_seed(seed)) < 0.6
    alone = only_short(case)
    batch = Posterior(case.emissions.repeat(2, 1, 1), *case.scores[1:])
    if not bool(allowed.any(2).all()):
        with pytest.raises(NoLabelingError):
            alone.viterbi(allowed)
        return
    found = alone.viterbi(allowed)
    for ours, theirs in zip(found, batch.viterbi(allowed.repeat(2, 1, 1)), strict=True):
        torch.testing.assert_close(ours, theirs[:1])
    torch.testing.assert_close(
        alone.log_prob(found.labels), batch.log_prob(found.labels.repeat(2, 1))[:1]
    )
    with pytest.raises(ValueError, match="allowed"):
        alone.viterbi(allowed[:, 1:])


@MANY
@given(
    st.integers(0, 10_000),
    st.integers(1, 9),
    st.integers(1, 4),
    st.sampled_from([0.0, 1e-6, 0.05, 0.4]),
)
def test_spans_above_a_threshold(seed: int, width: int, labels: int, threshold: float) -> None:
    case, _ = one_row(seed, width, labels)
    masks = random_masks(labels, seed)
    begun = [(0, s, k) for s in range(width) for k in range(2)]
    rows, starts, types = zip(*begun, strict=True)
    places = {"rows": rows, "starts": starts, "types": types}
    batch = Posterior(case.emissions.repeat(2, 1, 1), *case.scores[1:])
    alone = only_short(case)
    ours, theirs = (
        {(p, e): x for p, e, x in zip(*(x.tolist() for x in found), strict=True)}
        for found in (
            alone.spans_above(threshold, **places, masks=masks),
            batch.spans_above(threshold, **places, masks=masks),
        )
    )
    assert ours == pytest.approx(theirs)
    with pytest.raises(ValueError, match="not within"):
        alone.spans_above(threshold, rows=[0], starts=[width], types=[0], masks=masks)


def test_small_numbers_do_not_vanish() -> None:
    """A label is improbable at every word, and the second half of the row makes up for it."""
    length = 60
    emissions = torch.zeros(1, length, 2, dtype=torch.float64)
    emissions[0, : length // 2, 0], emissions[0, length // 2 :, 0] = -40.0, 40.0
    stays = torch.tensor([[0.0, -torch.inf], [-torch.inf, 0.0]], dtype=torch.float64)
    posterior = Posterior(emissions, stays)
    assert posterior._row is None
    torch.testing.assert_close(posterior.marginals(), torch.full_like(emissions, 0.5))


def test_an_improbable_span_keeps_its_probability() -> None:
    """What is 1e-120 here would be worth as little as 0 to a sum of larger numbers."""
    emissions = torch.zeros(1, 3, 2, dtype=torch.float64)
    emissions[0, :, 1] = -92.0
    masks = SpanMasks(
        begin=[[[True, True], [True, True]]],
        begin_first=[[False, True]],
        inside=[[[False, False], [False, True]]],
        end=[[[True, True], [True, True]]],
        end_last=[[True, True]],
    )
    posterior = Posterior(emissions, torch.zeros(2, 2, dtype=torch.float64))
    assert posterior._row is not None
    span = {"rows": [0], "starts": [0], "ends": [3], "types": [0]}
    found = posterior.span_probability(**span, masks=masks)
    assert found.log().item() == pytest.approx(3 * -92.0)


@pytest.mark.parametrize("where", ["emission", "transition", "start"])
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_broken_scores_are_told_as_ever(where: str, value: float) -> None:
    emissions, transitions, start = torch.zeros(1, 3, 2), torch.zeros(2, 2), torch.zeros(2)
    tensor = {"emission": emissions[0], "transition": transitions, "start": start[None]}[where]
    tensor[0, 1] = value
    posterior = Posterior(emissions, transitions, start)
    kind = RowError if where == "emission" else ValueError
    for question in (posterior.viterbi, posterior.marginals, lambda: posterior.nbest(1)):
        with pytest.raises(kind, match=r"NaN|inf|nan"):
            question()


def test_transitions_that_no_labeling_has_do_not_count() -> None:
    """Of a single word, as in a batch."""
    emissions, pairs = torch.tensor([[[0.0, 1.0]]]), torch.full((2, 2), torch.nan)
    posterior = Posterior(emissions, pairs)
    expected = emissions.log_softmax(2)[0, :, 1]
    torch.testing.assert_close(posterior.log_prob(torch.tensor([[1]])), expected)
    torch.testing.assert_close(posterior.nbest(1).log_probabilities[0], expected)


def test_numbers_out_of_range_are_no_warning_nor_error() -> None:
    small = torch.tensor([[[0.0, -800.0, -9.0], [0.0, 1.0, -300.0]]])
    large = torch.tensor([[[1e308, -1e308], [0.0, 1.7e308]]], dtype=torch.float64)
    with np.errstate(all="raise"):
        posterior = Posterior(small, torch.zeros(3, 3))
        assert posterior.viterbi().labels.tolist() == [[0, 1]]
        assert posterior.marginals()[0, 0, 1] == 0
        with pytest.raises(NoLabelingError):  # as in a batch: its score is beyond the range
            Posterior(large, torch.zeros(2, 2, dtype=torch.float64)).viterbi()


def test_no_labeling_is_told_as_ever() -> None:
    emissions = torch.zeros(1, 3, 2)
    emissions[0, 1] = -torch.inf
    posterior = Posterior(emissions, torch.zeros(2, 2))
    with pytest.raises(NoLabelingError):
        posterior.viterbi()
    with pytest.raises(NoLabelingError):
        posterior.nbest(1)


@pytest.mark.parametrize(
    "change",
    [
        {"rows": [1]},
        {"starts": [-1]},
        {"starts": [2]},
        {"ends": [4]},
        {"types": [2]},
        {"starts": [0, 1]},
        {"starts": [[0]]},
        {"rows": torch.tensor(0)},
        {"types": torch.tensor([[0]])},
    ],
)
def test_wrong_spans_are_told_as_ever(change: dict[str, Any]) -> None:
    case, _ = one_row(1, 3, 3)
    posterior = only_short(case)
    spans = {"rows": [0], "starts": [0], "ends": [2], "types": [1]} | change
    with pytest.raises(ValueError, match=r"span|rows|type|dimension|length"):
        posterior.span_probability(**spans, masks=random_masks(3, 0))


@pytest.mark.parametrize("wrong", range(5))
def test_wrong_masks_are_told_as_ever(wrong: int) -> None:
    case, _ = one_row(1, 3, 3)
    masks = [np.ones(shape, bool) for shape in SHAPES]
    masks[wrong] = masks[wrong][..., :2]
    with pytest.raises(ValueError, match="shape"):
        only_short(case).span_probability(
            rows=[0], starts=[0], ends=[2], types=[1], masks=SpanMasks(*masks)
        )


def test_which_chains_are_one_row() -> None:
    emissions, pairs = torch.zeros(1, 3, 2), torch.zeros(2, 2)
    assert OneRow.of(prepare(emissions, pairs)) is not None
    assert OneRow.of(prepare(emissions, pairs, mask=torch.ones(1, 3))) is not None
    others = [
        prepare(emissions.repeat(2, 1, 1), pairs),
        prepare(emissions, pairs, fast=True),  # in float32
        prepare(emissions, pairs.expand(1, 2, 2, 2)),
        prepare(emissions, pairs, mask=torch.tensor([[1, 1, 0]])),
        prepare(emissions[:, :0], pairs),
        prepare(torch.zeros(1, 2000, 2), pairs),
        prepare(torch.zeros(1, 3, 200), torch.zeros(200, 200)),
    ]
    assert [OneRow.of(chain) for chain in others] == [None] * len(others)


def test_masks_and_spans_may_be_lists_or_tensors() -> None:
    case, _ = one_row(5, 4, 3)
    masks = random_masks(3, 5)
    posterior = only_short(case)
    spans = {"rows": [0, 0], "starts": [0, 1], "ends": [2, 4], "types": [1, 0]}
    expected = posterior.span_probability(**spans, masks=masks)
    as_lists = SpanMasks(*(mask.tolist() for mask in masks))
    tensors = {name: torch.tensor(x) for name, x in spans.items()}
    torch.testing.assert_close(posterior.span_probability(**spans, masks=as_lists), expected)
    torch.testing.assert_close(posterior.span_probability(**tensors, masks=masks), expected)
