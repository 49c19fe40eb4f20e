"""One prepared batch gives what the separate functions give."""

import pytest
import torch

from ncrf.crf import Posterior, SpanMasks, nbest, span_probability


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
    for ours, theirs in zip(posterior.nbest(n), expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    found = posterior.span_probability(**spans, masks=masks)
    separate = span_probability(emissions, *scores, mask, **spans, masks=masks)
    assert not found.requires_grad
    torch.testing.assert_close(found, separate.detach(), atol=1e-6, rtol=1e-6)
    with pytest.raises(ValueError, match="n is 0"):
        posterior.nbest(0)
