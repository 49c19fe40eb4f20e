"""CRF: the interface of the package pytorch-crf, on this engine."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ncrf.crf.forward_backward import log_prob
from ncrf.crf.reduction import reduce
from ncrf.crf.viterbi import viterbi


class CRF(nn.Module):
    """A CRF layer with pytorch-crf's constructor, parameters, methods and results.

    Unlike there, a mask may have holes and empty rows, and half-precision emissions are computed in
    float32.
    """

    def __init__(self, num_tags: int, batch_first: bool = False) -> None:
        """Makes a layer with parameters drawn from -0.1 to 0.1.

        Args:
            num_tags: Y, 1 or more.
            batch_first: take [B, L, ...] and not [L, B, ...].

        Raises:
            ValueError: num_tags is below 1.
        """
        super().__init__()
        if num_tags <= 0:
            raise ValueError(f"num_tags is {num_tags}, expected 1 or more")
        self.num_tags = num_tags
        self.batch_first = batch_first
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        for parameter in (self.start_transitions, self.end_transitions, self.transitions):
            nn.init.uniform_(parameter, -0.1, 0.1)

    def __repr__(self) -> str:
        """The layer and its number of labels."""
        return f"{type(self).__name__}(num_tags={self.num_tags})"

    def forward(
        self, emissions: Tensor, tags: Tensor, mask: Tensor | None = None, reduction: str = "sum"
    ) -> Tensor:
        """Log-likelihood of tags.

        Args:
            emissions: [L, B, Y], or [B, L, Y] if batch_first.
            tags: [L, B] or [B, L] integers.
            mask: [L, B] or [B, L], or None.
            reduction: none, sum, mean (by rows) or token_mean (by words).

        Raises:
            ValueError: a shape or the reduction is wrong, or a score is NaN.
        """
        emissions, mask = self._batch_first(emissions, mask)
        tags = tags if self.batch_first else tags.transpose(0, 1)
        scores = (self.transitions, self.start_transitions, self.end_transitions)
        rows = log_prob(emissions, tags, *scores, mask)
        return reduce(rows, mask, emissions.shape[1], reduction)

    def decode(self, emissions: Tensor, mask: Tensor | None = None) -> list[list[int]]:
        """The best tags of each row, as lists of the words' tags.

        Args and errors as forward.
        """
        emissions, mask = self._batch_first(emissions, mask)
        scores = (self.transitions, self.start_transitions, self.end_transitions)
        rows: list[list[int]] = viterbi(emissions, *scores, mask).labels.tolist()
        if mask is None:
            return rows
        return [
            [tag for tag, word in zip(row, words, strict=True) if word]
            for row, words in zip(rows, mask.tolist(), strict=True)
        ]

    def _batch_first(self, emissions: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        if emissions.dim() != 3 or emissions.shape[2] != self.num_tags:
            shape = list(emissions.shape)
            raise ValueError(f"emissions are {shape}, expected 3 dimensions, {self.num_tags} last")
        if self.batch_first:
            return emissions, mask
        return emissions.transpose(0, 1), None if mask is None else mask.transpose(0, 1)
