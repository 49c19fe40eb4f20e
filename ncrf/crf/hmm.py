"""The conditional random field of a hidden Markov model."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ncrf.crf.errors import RowError
from ncrf.crf.layer import LinearChainCRF

_TOLERANCE = 1e-6  # by which probabilities may miss the sum of 1


class ObservationScores(nn.Module):
    """Emission scores of discrete observations: a table [V, Y], one row for each of V symbols.

    Attributes:
        scores: the table, a parameter; minus infinity where a label never emits a symbol.
    """

    def __init__(self, scores: Tensor) -> None:
        """Takes the table [V, Y]."""
        super().__init__()
        self.scores = nn.Parameter(scores)

    def extra_repr(self) -> str:
        """The numbers of symbols and labels, for print()."""
        return f"symbols={self.scores.shape[0]}, labels={self.scores.shape[1]}"

    def forward(self, observations: Tensor, mask: Tensor | None = None) -> Tensor:
        """Emissions [B, L, Y] of observations.

        Args:
            observations: [B, L] integers from 0 to V-1; what stands at masked positions is ignored.
            mask: [B, L] or None.

        Raises:
            TypeError: observations are not integers.
            ValueError: a shape does not fit; with the row and position (RowError) if there is no
                such symbol.
        """
        if observations.is_floating_point() or observations.dtype == torch.bool:
            raise TypeError(f"observations are {observations.dtype}, expected integers")
        if observations.dim() != 2 or (mask is not None and mask.shape != observations.shape):
            shapes = [list(x.shape) for x in (observations, mask) if x is not None]
            raise ValueError(f"observations and mask are {shapes}, expected [B, L]")
        wrong = (observations < 0) | (observations >= len(self.scores))
        if mask is not None:
            wrong &= mask.bool()
        if bool(wrong.any()):
            row, position = (int(i) for i in wrong.nonzero()[0])
            symbol, last = int(observations[row, position]), len(self.scores) - 1
            raise RowError(f"observation {symbol}, expected 0 to {last}", row, position)
        if mask is not None:
            observations = observations.masked_fill(~mask.bool(), 0)
        return self.scores[observations.long()]


class HiddenMarkovCRF(NamedTuple):
    """A CRF whose P(labels | observations) is a hidden Markov model's, and its emissions."""

    crf: LinearChainCRF
    emissions: ObservationScores


def from_hmm(start: Any, transition: Any, emission: Any, end: Any = None) -> HiddenMarkovCRF:
    """The CRF with the same P(states | observations) as a hidden Markov model.

    The joint probability of an HMM is a product, so its logarithm is a sum of scores, and with
    log-probabilities as scores exp(score) = P(states, observations) and Z = P(observations)
    (Lafferty, McCallum & Pereira 2001; Sutton & McCallum 2012, section 2.3):

        crf, emissions = from_hmm(start, transition, emission)
        crf.marginals(emissions(observations, mask), mask)

    A probability of 0 is a score of minus infinity. Observations that the HMM cannot emit at all
    have no posterior: NoLabelingError names their row. Scores have the type of the tensors given,
    or float64 for lists and arrays.

    Args:
        start: [Y], P(first state).
        transition: [Y, Y], P(next state | state), from row to column.
        emission: [Y, V], P(symbol | state).
        end: [Y], P(no next state | state), with which the rows of transition sum to 1; None for an
            HMM that says nothing of the end.

    Raises:
        ValueError: a shape does not fit; a probability is below 0 or NaN; a distribution does not
            sum to 1.
    """
    first, onward, symbols = (_floating(x) for x in (start, transition, emission))
    last = torch.zeros_like(first) if end is None else _floating(end)
    labels = onward.shape[0] if onward.dim() else 0
    shapes = {"start": (first, (labels,)), "transition": (onward, (labels, labels))}
    shapes |= {"emission": (symbols, (labels, *symbols.shape[-1:])), "end": (last, (labels,))}
    for name, (values, expected) in shapes.items():
        if values.shape != expected or labels == 0:
            raise ValueError(f"{name}: shape {list(values.shape)}, expected {list(expected)}")
        if not bool((values >= 0).all()):
            raise ValueError(f"{name} holds a number below 0 or NaN, expected probabilities")
    _require_distributions("start", first.unsqueeze(0))
    _require_distributions("transition", torch.cat([onward, last.unsqueeze(1)], 1))
    _require_distributions("emission", symbols)
    crf = LinearChainCRF(labels).to(device=first.device, dtype=first.dtype)
    with torch.no_grad():
        crf.start_transitions.copy_(first.log())
        crf.transitions.copy_(onward.log())
        if end is not None:
            crf.end_transitions.copy_(last.log())
    return HiddenMarkovCRF(crf, ObservationScores(symbols.log().t().contiguous()))


def _floating(values: Any) -> Tensor:
    """A tensor of floating type; float64 unless it was one."""
    if isinstance(values, Tensor) and values.is_floating_point():
        return values.detach()
    return torch.as_tensor(values, dtype=torch.float64)


def _require_distributions(name: str, rows: Tensor) -> None:
    """Raises ValueError unless each of the rows [N, V] sums to 1."""
    sums = rows.double().sum(1)
    wrong = ((sums - 1).abs() > _TOLERANCE).nonzero()
    if len(wrong):
        row = int(wrong[0])
        place = name if name == "start" else f"{name} of state {row}"
        raise ValueError(f"{place}: probabilities sum to {sums[row].item():.6g}, expected 1")
