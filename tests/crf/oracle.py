"""Enumeration of all labelings in float64, and the cases that are compared with it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor


@dataclass(frozen=True)
class Case:
    """A batch of chains in float64."""

    emissions: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor
    mask: Tensor

    @property
    def scores(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.emissions, self.transitions, self.start, self.end

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        return (*self.scores, self.mask)

    @property
    def num_labels(self) -> int:
        return self.emissions.shape[2]

    def rows(self) -> list[Row]:
        return [Row(self, b) for b in range(len(self.emissions))]

    def changed(self, function: Any) -> Case:
        """With a function of each tensor of scores."""
        emissions, transitions, start, end = (function(x) for x in self.scores)
        return Case(emissions, transitions, start, end, self.mask)

    def to(self, dtype: torch.dtype) -> Case:
        return self.changed(lambda x: x.to(dtype))

    def leaves(self) -> Case:
        return self.changed(lambda x: x.clone().requires_grad_())

    def with_emissions(self, emissions: Tensor) -> Case:
        return replace(self, emissions=emissions)

    def random_labels(self, seed: int) -> Tensor:
        """A possible labeling for each row, and -100 where masked."""
        labels = torch.full(self.mask.shape, -100)
        generator = torch.Generator().manual_seed(seed)
        for b, row in enumerate(self.rows()):
            possible = row.paths[row.scores() > -torch.inf]
            chosen = int(torch.randint(len(possible), (), generator=generator))
            labels[b, row.positions] = possible[chosen]
        return labels


class Row:
    """One row of a case: its words alone, and all N labelings of them.

    Attributes:
        positions: [n], the places of its words.
        paths: [N, n], all labelings.
    """

    def __init__(self, case: Case, b: int) -> None:
        self.positions = case.mask[b].bool().nonzero().squeeze(1)
        self.length = len(self.positions)
        self.emissions = case.emissions[b, self.positions]
        self.start, self.end = case.start, case.end
        self.num_labels = case.num_labels
        into = self.positions[1:] - 1
        by_position = case.transitions.dim() == 4
        self.pairs = [case.transitions[b, t] if by_position else case.transitions for t in into]

    @cached_property
    def paths(self) -> Tensor:
        every = itertools.product(range(self.num_labels), repeat=self.length)
        return torch.tensor(list(every), dtype=torch.long)

    def scores(self) -> Tensor:
        """[N], the score of each labeling by its definition, differentiable."""
        if self.length == 0:
            return self.start[:0].sum().reshape(1)
        total = self.start[self.paths[:, 0]] + self.end[self.paths[:, -1]]
        for t in range(self.length):
            total = total + self.emissions[t, self.paths[:, t]]
        for t, pairs in enumerate(self.pairs):
            total = total + pairs[self.paths[:, t], self.paths[:, t + 1]]
        return total

    def log_z(self) -> Tensor:
        """Over the possible labelings, so that its gradient is clear of NaN."""
        scores = self.scores()
        return torch.logsumexp(scores[scores > -torch.inf], 0)

    def probabilities(self) -> Tensor:
        """[N], P(labels | x)."""
        return torch.exp(self.scores() - self.log_z())

    def place(self, labels: Tensor) -> int:
        """The place among the N of the labels [L] at the row's positions."""
        place = 0
        for y in labels[self.positions].tolist():
            place = place * self.num_labels + y
        return place

    def agreeing(self, allowed: Tensor) -> Tensor:
        """[N], True for labelings within allowed [L, Y]."""
        kept = allowed[self.positions]
        within: Tensor = kept[torch.arange(self.length), self.paths].all(1)
        return within

    def marginals(self) -> Tensor:
        """[n, Y]."""
        one = torch.nn.functional.one_hot(self.paths, self.num_labels).double()
        found: Tensor = torch.tensordot(self.probabilities(), one, 1)
        return found

    def pairwise_marginals(self) -> Tensor:
        """[n-1, Y, Y]."""
        one = torch.nn.functional.one_hot(self.paths, self.num_labels).double()
        return torch.einsum("p,pti,ptj->tij", self.probabilities(), one[:, :-1], one[:, 1:])


def make_case(
    seed: int,
    batch: int = 3,
    width: int = 5,
    labels: int = 3,
    *,
    scale: float = 1.0,
    forbidden: float = 0.0,
    by_position: bool = False,
    mask: str = "ragged",
) -> Case:
    """A random case in which each row has a possible labeling."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        values = torch.randn(shape, generator=generator, dtype=torch.float64) * scale
        dead = torch.rand(shape, generator=generator) < forbidden
        return values.masked_fill(dead, -torch.inf)

    shape = (batch, max(width - 1, 0), labels, labels) if by_position else (labels, labels)
    case = Case(
        draw(batch, width, labels),
        draw(*shape),
        draw(labels),
        draw(labels),
        _mask(mask, batch, width, generator),
    )
    for b, row in enumerate(case.rows()):
        _open_a_path(case, b, row, torch.randint(labels, (row.length,), generator=generator))
    return case


def _mask(kind: str, batch: int, width: int, generator: torch.Generator) -> Tensor:
    if kind == "full":
        return torch.ones(batch, width, dtype=torch.bool)
    if kind == "holes":
        return torch.rand(batch, width, generator=generator) < 0.6
    lengths = torch.randint(0, width + 1, (batch, 1), generator=generator)
    return torch.arange(width) < lengths


def _open_a_path(case: Case, b: int, row: Row, labels: Tensor) -> None:
    """Makes the scores along a labeling finite."""
    if row.length == 0:
        return
    for scores, y in ((case.start, labels[0]), (case.end, labels[-1])):
        scores[y] = torch.nan_to_num(scores[y], neginf=0.0)
    for position, y in zip(row.positions, labels, strict=True):
        case.emissions[b, position, y] = torch.nan_to_num(
            case.emissions[b, position, y], neginf=0.0
        )
    for position, i, j in zip(row.positions[1:], labels, labels[1:], strict=False):
        pairs = case.transitions[b, position - 1] if case.transitions.dim() == 4 else None
        pairs = case.transitions if pairs is None else pairs
        pairs[i, j] = torch.nan_to_num(pairs[i, j], neginf=0.0)


def cases(**fixed: Any) -> st.SearchStrategy[Case]:
    """Small cases of all kinds."""
    choices = {
        "seed": st.integers(0, 2**31),
        "batch": st.sampled_from([3, 2, 1]),
        "width": st.sampled_from([4, 5, 3, 2, 1, 0]),
        "labels": st.sampled_from([3, 4, 2, 1]),
        "scale": st.sampled_from([1.0, 5.0, 60.0]),
        "forbidden": st.sampled_from([0.0, 0.3, 0.6]),
        "by_position": st.booleans(),
        "mask": st.sampled_from(["full", "ragged", "holes"]),
    }
    choices.update({key: st.just(value) for key, value in fixed.items()})
    return st.builds(make_case, **choices)


def close(found: Tensor, expected: Tensor | float, tolerance: float = 1e-9) -> bool:
    """Equal up to a tolerance, relative beyond 1; infinities must agree."""
    found = found.detach().double()
    expected = torch.as_tensor(expected, dtype=torch.float64).detach().expand_as(found)
    return torch.allclose(found, expected, rtol=tolerance, atol=tolerance)


def by_row(case: Case, function: Any) -> Tensor:
    """[B] of a function of rows."""
    return torch.stack([torch.as_tensor(function(row)) for row in case.rows()])
