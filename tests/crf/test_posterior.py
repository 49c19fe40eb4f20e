"""One prepared batch gives what the separate functions give."""

import pytest
import torch

from ncrf.crf import (
    Posterior,
    SpanMasks,
    log_prob,
    marginals,
    nbest,
    span_probability,
    viterbi,
)


@pytest.mark.parametrize("n", [1, 3])
def test_the_numbers_are_those_of_the_separate_functions(n):
    generator = torch.Generator().manual_seed(1)
    labels = 3
    emissions = torch.randn(4, 5, labels, generator=generator, requires_grad=True)
    scores = [
        torch.randn(*s, generator=generator) for s in ((labels, labels), (labels,), (labels,))
    ]
    mask = torch.arange(5) < torch.tensor([[5], [1], [3], [0]])
    masks = SpanMasks(
        *(
            torch.rand(2, *s, generator=generator) < 0.7
            for s in ((labels, labels), (labels,), (labels, labels), (labels, labels), (labels,))
        )
    )
    spans = {
        "rows": [0, 0, 2, 1],
        "starts": [0, 2, 1, 0],
        "ends": [2, 5, 3, 1],
        "types": [0, 1, 1, 0],
    }
    posterior = Posterior(emissions, *scores, mask)
    expected = nbest(emissions, *scores, mask, n=n)
    for alone in (True, False):
        for ours, theirs in zip(posterior.nbest(n, alone=alone), expected, strict=True):
            torch.testing.assert_close(ours, theirs)
    found = posterior.span_probability(**spans, masks=masks)
    separate = span_probability(emissions, *scores, mask, **spans, masks=masks)
    assert not found.requires_grad
    torch.testing.assert_close(found, separate.detach(), atol=1e-6, rtol=1e-6)
    with pytest.raises(ValueError, match="n is 0"):
        posterior.nbest(0)


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_labels_and_labelings_are_those_of_the_separate_functions(dtype, holes, constrained):
    generator = torch.Generator().manual_seed(2)
    labels = 4
    emissions = torch.randn(4, 6, labels, generator=generator, dtype=dtype, requires_grad=True)
    shapes = ((labels, labels), (labels,), (labels,))
    scores = [torch.randn(*s, generator=generator, dtype=dtype) for s in shapes]
    mask = torch.arange(6) < torch.tensor([[6], [2], [4], [0]])
    if holes:
        mask = mask.flip(1) & (torch.arange(6) != 3)
    limits = {}
    if constrained:
        ones = torch.arange(labels) == 1  # which is always possible
        start, pairs, end = (
            (torch.rand(*shapes[i], generator=generator) < 0.8) | ones for i in (1, 0, 2)
        )
        limits["constraints"] = start, pairs, end
    allowed = torch.rand(4, 6, labels, generator=generator) < 0.6
    allowed |= torch.arange(labels) == 1
    posterior = Posterior(emissions, *scores, mask, **limits)
    torch.testing.assert_close(
        posterior.marginals(), marginals(emissions, *scores, mask, **limits).detach()
    )
    for choice in (None, allowed):
        found = posterior.viterbi(choice)
        expected = viterbi(emissions, *scores, mask, allowed=choice, **limits)
        torch.testing.assert_close(tuple(found), tuple(expected))
        logs = posterior.log_prob(found.labels)
        assert not logs.requires_grad
        assert logs.dtype == dtype
        torch.testing.assert_close(
            logs, log_prob(emissions, found.labels, *scores, mask, **limits).detach()
        )
    with pytest.raises(ValueError, match="allowed"):
        posterior.viterbi(allowed[:, 1:])


def test_an_impossible_labeling_has_no_probability():
    start = torch.tensor([0.0, -torch.inf])
    posterior = Posterior(torch.zeros(1, 2, 2), torch.zeros(2, 2), start)
    assert posterior.log_prob(torch.tensor([[1, 0]])).item() == -torch.inf
    with pytest.raises(ValueError, match="label 2"):
        posterior.log_prob(torch.tensor([[0, 2]]))


@pytest.mark.parametrize("threshold", [0.0, 0.02, 0.2])
@pytest.mark.parametrize("by_position", [False, True])
@pytest.mark.parametrize("holes", [False, True])
def test_spans_above_a_threshold_are_those_of_all_spans(holes, by_position, threshold):
    generator = torch.Generator().manual_seed(3)
    labels, width = 3, 6
    pairs = (labels, labels)
    emissions = torch.randn(4, width, labels, generator=generator)
    shapes = ((4, width - 1, *pairs) if by_position else pairs, (labels,), (labels,))
    scores = [torch.randn(*s, generator=generator) for s in shapes]
    mask = torch.arange(width) < torch.tensor([[width], [1], [4], [0]])
    if holes:
        mask = mask.flip(1) & (torch.arange(width) != 3)
    single = (labels,)
    masks = SpanMasks(
        *(
            torch.rand(2, *s, generator=generator) < 0.8
            for s in (pairs, single, pairs, pairs, single)
        )
    )
    lengths = mask.sum(1).tolist()
    begun = [(b, s, k) for b, n in enumerate(lengths) for s in range(n) for k in range(2)]
    rows, starts, types = zip(*begun, strict=True)
    posterior = Posterior(emissions, *scores, mask)
    found = posterior.spans_above(threshold, rows=rows, starts=starts, types=types, masks=masks)
    ours = {(*begun[i], e): p for i, e, p in zip(*(x.tolist() for x in found), strict=True)}
    spans = [(b, s, k, e) for b, s, k in begun for e in range(s + 1, lengths[b] + 1)]
    rows, starts, types, ends = zip(*spans, strict=True)
    every = posterior.span_probability(
        rows=rows, starts=starts, ends=ends, types=types, masks=masks
    ).tolist()
    expected = {span: p for span, p in zip(spans, every, strict=True) if p > threshold}
    assert ours == pytest.approx(expected)
    assert len(expected) > 3
    nothing = posterior.spans_above(threshold, rows=[], starts=[], types=[], masks=masks)
    assert [len(x) for x in nothing] == [0, 0, 0]
    with pytest.raises(ValueError, match="not within"):
        posterior.spans_above(threshold, rows=[1], starts=[5], types=[0], masks=masks)
