"""The label pairs that are legal, and the legal labels at both ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Constraints(NamedTuple):
    """Legal first labels [Y], label pairs [Y, Y] (from, to) and last labels [Y]; True is legal.

    Fields may be Boolean tensors, numpy arrays or nested lists.
    """

    start: Any
    transitions: Any
    end: Any


def as_constraints(constraints: Sequence[Any], labels: int, device: torch.device) -> Constraints:
    """Three array-likes as Boolean tensors [Y], [Y, Y], [Y]; ValueError for other shapes."""
    if len(constraints) != 3:
        raise ValueError("constraints are three arrays: start [Y], transitions [Y, Y], end [Y]")
    tensors = [x if isinstance(x, Tensor) else torch.tensor(x) for x in constraints]
    start, transitions, end = (x.to(device=device, dtype=torch.bool) for x in tensors)
    found = Constraints(start, transitions, end)
    for name, tensor in found._asdict().items():
        expected = [labels, labels] if name == "transitions" else [labels]
        if list(tensor.shape) != expected:
            raise ValueError(f"constraints.{name}: shape {list(tensor.shape)}, expected {expected}")
    return found
