"""LinearChainCRF: the CRF as a layer with parameters of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ncrf.crf.constraints import Constraints, as_constraints
from ncrf.crf.expectations import ExpectedCounts, entropy, expected_counts, pairwise_marginals
from ncrf.crf.forward_backward import (
    ForwardBackward,
    forward_backward,
    log_partition,
    log_prob,
    marginals,
    partial_log_prob,
    path_score,
)
from ncrf.crf.posterior import Posterior
from ncrf.crf.reduction import reduce
from ncrf.crf.sampling import posterior_decode, sample
from ncrf.crf.spans import SpanMasks, span_probability
from ncrf.crf.viterbi import NBest, nbest, viterbi

Result = TypeVar("Result")


class LinearChainCRF(nn.Module):
    """A linear-chain CRF over batch-first emissions.

    All methods take emissions [B, L, Y] and a mask [B, L] of any pattern (None: every position is a
    word), and two restrictions that make other labelings impossible, in all that is computed:
    ``allowed`` [B, L, Y], possible labels by position; and ``constraints``, legal first labels [Y],
    pairs [Y, Y] and last labels [Y], in place of those given at construction. ``pair_scores``
    [B, L-1, Y, Y] are added to the transitions: entry t to those from position t to t+1, or, where
    the mask has holes, to those from the word before position t+1.
    """

    def __init__(self, num_labels: int, constraints: Sequence[Any] | None = None) -> None:
        """Makes a layer whose parameters are all zero.

        Args:
            num_labels: Y, 1 or more.
            constraints: used by every method unless a call brings its own; None for no constraints.

        Raises:
            ValueError: num_labels is below 1, or the constraints have another shape.
        """
        super().__init__()
        if num_labels < 1:
            raise ValueError(f"num_labels is {num_labels}, expected 1 or more")
        self.num_labels = num_labels
        self.transitions = nn.Parameter(torch.zeros(num_labels, num_labels))
        self.start_transitions = nn.Parameter(torch.zeros(num_labels))
        self.end_transitions = nn.Parameter(torch.zeros(num_labels))
        legal = Constraints(None, None, None)
        if constraints is not None:
            legal = as_constraints(constraints, num_labels, self.transitions.device)
        # Buffers, so that they move with the layer; not saved, because the labels imply them.
        for name, tensor in legal._asdict().items():
            self.register_buffer(f"legal_{name}", tensor, persistent=False)

    def extra_repr(self) -> str:
        """The number of labels, for print()."""
        return f"num_labels={self.num_labels}"

    def forward(
        self,
        emissions: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        reduction: str = "sum",
        *,
        allowed: Tensor | None = None,
        constraints: Sequence[Any] | None = None,
        pair_scores: Tensor | None = None,
        trusted: bool = False,
    ) -> Tensor:
        """Log-likelihood of labels, to be maximized.

        Args:
            emissions: [B, L, Y].
            labels: [B, L] integers; or [B, L, Y] Booleans, True for each label that a word may
                have, for the log of the total probability of all labelings that agree.
            mask: [B, L] or None.
            reduction: "none" gives [B]; "sum" the total; "mean" that by rows; "token_mean" that by
                words.
            allowed: [B, L, Y] or None.
            constraints: three Boolean arrays or None.
            pair_scores: [B, L-1, Y, Y] or None.
            trusted: check nothing and wait for no device, see log_prob; known labels only.

        Raises:
            TypeError: emissions are not floating, or labels not integers.
            ValueError: reduction is unknown; a shape does not fit; a score is NaN or plus infinity;
                with the row (RowError) a label is out of range or the labeling impossible.
        """
        given = (self._checked(emissions), labels, *self._scores(), mask)
        options: dict[str, Any] = {
            "allowed": allowed,
            "constraints": self._legal(constraints),
            "pair_scores": pair_scores,
        }
        if labels.dtype == torch.bool:
            rows = partial_log_prob(*given, **options)
        else:
            rows = log_prob(*given, **options, trusted=trusted)
        return reduce(rows, mask, emissions.shape[1], reduction)

    def decode(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        allowed: Tensor | None = None,
        constraints: Sequence[Any] | None = None,
        pair_scores: Tensor | None = None,
    ) -> Tensor:
        """The best labeling of each row, labels [B, L]; 0 at masked positions."""
        return self._call(viterbi, emissions, mask, allowed, constraints, pair_scores).labels

    def nbest(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        n: int = 1,
        *,
        allowed: Tensor | None = None,
        constraints: Sequence[Any] | None = None,
        pair_scores: Tensor | None = None,
    ) -> NBest:
        """The n best labelings: (log_probabilities [B, N], labels [B, N, L], counts [B])."""
        return self._call(nbest, emissions, mask, allowed, constraints, pair_scores, n=n)

    def marginals(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        allowed: Tensor | None = None,
        constraints: Sequence[Any] | None = None,
        pair_scores: Tensor | None = None,
    ) -> Tensor:
        """P(y_t | x) [B, L, Y]; 0 at masked positions."""
        return self._call(marginals, emissions, mask, allowed, constraints, pair_scores)

    def log_partition(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        allowed: Tensor | None = None,
        constraints: Sequence[Any] | None = None,
        pair_scores: Tensor | None = None,
    ) -> Tensor:
        """log Z [B]."""
        return self._call(log_partition, emissions, mask, allowed, constraints, pair_scores)

    def log_prob(
        self,
        emissions: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *,
        allowed: Tensor | None = None,
        constraints: Sequence[Any] | None = None,
        pair_scores: Tensor | None = None,
    ) -> Tensor:
        """log P(labels | x) [B]."""
        return self.forward(
            emissions,
            labels,
            mask,
            "none",
            allowed=allowed,
            constraints=constraints,
            pair_scores=pair_scores,
        )

    def forward_backward(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        allowed: Tensor | None = None,
        constraints: Sequence[Any] | None = None,
        pair_scores: Tensor | None = None,
    ) -> ForwardBackward:
        """Logarithms of the forward and backward vectors [B, L, Y] and of Z [B]."""
        return self._call(forward_backward, emissions, mask, allowed, constraints, pair_scores)

    def pairwise_marginals(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        allowed: Tensor | None = None,
        constraints: Sequence[Any] | None = None,
        pair_scores: Tensor | None = None,
    ) -> Tensor:
        """P(y_t, y_t+1 | x) [B, L-1, Y, Y]."""
        return self._call(pairwise_marginals, emissions, mask, allowed, constraints, pair_scores)

    def expected_counts(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        features: Tensor | None = None,
        weights: Tensor | None = None,
        allowed: Tensor | None = None,
        constraints: Sequence[Any] | None = None,
        pair_scores: Tensor | None = None,
    ) -> ExpectedCounts:
        """Expected counts of state and transition features; features [B, L, F], weights [B]."""
        return self._call(
            expected_counts,
            emissions,
            mask,
            allowed,
            constraints,
            pair_scores,
            features=features,
            weights=weights,
        )

    def posterior_decode(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        allowed: Tensor | None = None,
        constraints: Sequence[Any] | None = None,
        pair_scores: Tensor | None = None,
    ) -> Tensor:
        """The label of the highest marginal at each position, [B, L]."""
        return self._call(posterior_decode, emissions, mask, allowed, constraints, pair_scores)

    def entropy(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        allowed: Tensor | None = None,
        constraints: Sequence[Any] | None = None,
        pair_scores: Tensor | None = None,
    ) -> Tensor:
        """Entropy [B] of P(y | x) in nats."""
        return self._call(entropy, emissions, mask, allowed, constraints, pair_scores)

    def sample(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        n: int = 1,
        generator: torch.Generator | None = None,
        allowed: Tensor | None = None,
        constraints: Sequence[Any] | None = None,
        pair_scores: Tensor | None = None,
    ) -> Tensor:
        """n labelings [B, n, L] of each row, drawn from P(y | x)."""
        return self._call(
            sample, emissions, mask, allowed, constraints, pair_scores, n=n, generator=generator
        )

    def span_probability(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        rows: Any,
        starts: Any,
        ends: Any,
        types: Any,
        masks: SpanMasks,
        allowed: Tensor | None = None,
        constraints: Sequence[Any] | None = None,
        pair_scores: Tensor | None = None,
    ) -> Tensor:
        """Probability [K] of each span [starts, ends) of rows; see spans.span_probability."""
        return self._call(
            span_probability,
            emissions,
            mask,
            allowed,
            constraints,
            pair_scores,
            rows=rows,
            starts=starts,
            ends=ends,
            types=types,
            masks=masks,
        )

    def posterior(
        self,
        emissions: Tensor,
        mask: Tensor | None = None,
        *,
        allowed: Tensor | None = None,
        constraints: Sequence[Any] | None = None,
        pair_scores: Tensor | None = None,
    ) -> Posterior:
        """P(y | x) of a batch that is asked for more than one thing; see posterior.Posterior."""
        return self._call(Posterior, emissions, mask, allowed, constraints, pair_scores)

    def path_score(
        self,
        emissions: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *,
        constraints: Sequence[Any] | None = None,
        pair_scores: Tensor | None = None,
    ) -> Tensor:
        """Score [B] of the given labelings."""
        return path_score(
            self._checked(emissions),
            labels,
            *self._scores(),
            mask,
            constraints=self._legal(constraints),
            pair_scores=pair_scores,
        )

    def _call(
        self,
        function: Callable[..., Result],
        emissions: Tensor,
        mask: Tensor | None,
        allowed: Tensor | None,
        constraints: Sequence[Any] | None,
        pair_scores: Tensor | None,
        **options: Any,
    ) -> Result:
        limits = {"allowed": allowed, "constraints": self._legal(constraints)}
        scores = (self._checked(emissions), *self._scores())
        return function(*scores, mask, pair_scores=pair_scores, **limits, **options)

    def _scores(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.transitions, self.start_transitions, self.end_transitions

    def _legal(self, constraints: Sequence[Any] | None) -> Sequence[Any] | None:
        if constraints is not None or self.legal_start is None:
            return constraints
        return Constraints(self.legal_start, self.legal_transitions, self.legal_end)

    def _checked(self, emissions: Tensor) -> Tensor:
        if emissions.dim() != 3 or emissions.shape[2] != self.num_labels:
            shape = list(emissions.shape)
            raise ValueError(f"emissions are {shape}, expected [B, L, {self.num_labels}]")
        return emissions
