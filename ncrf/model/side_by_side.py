"""Parts of a layer that threads compute side by side, forward and backward."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
R = TypeVar("R")

_OF_THREAD = threading.local()


@dataclass(frozen=True)
class Part:
    """A computation, ``function(*inputs)``.

    It draws no random numbers, and of tensors with a gradient it reads its ``inputs`` and
    ``parameters`` alone.
    """

    function: Callable[..., Tensor]
    inputs: Sequence[Tensor]
    parameters: Sequence[Tensor]


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let ``count`` threads, this one among them, share what it computes ``side_by_side``.

    For training on a CPU. Who computes a part has no influence on its numbers.
    """
    if count <= 1:
        yield
        return
    with ThreadPoolExecutor(count - 1, "ncrf layers") as pool:
        _OF_THREAD.team = _Team(pool, count)
        try:
            yield
        finally:
            del _OF_THREAD.team


def thread_count() -> int:
    """How many threads share what this thread computes now: one, outside of training."""
    team = getattr(_OF_THREAD, "team", None)
    if team is None or not torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
        return 1
    count: int = team.count
    return count


def side_by_side(parts: Sequence[Part]) -> tuple[Tensor, ...]:
    """What the parts compute; in threads, as their gradients will be, if there are several."""
    if len(parts) == 1 or thread_count() == 1:
        return tuple(part.function(*part.inputs) for part in parts)
    # The last part first: in this order autograd adds up gradients of one parameter by itself.
    tensors = [tensor for part in reversed(parts) for tensor in (*part.inputs, *part.parameters)]
    result: tuple[Tensor, ...] = _SideBySide.apply(parts, *tensors)  # type: ignore[no-untyped-call]
    return result


def at_once(jobs: Sequence[Callable[[], object]], *, shared: bool) -> None:
    """Do jobs that need no gradient; if ``shared``, in threads, inside a backward pass too."""
    team = getattr(_OF_THREAD, "team", None)
    if shared and team is not None:
        team.map(lambda job: job(), jobs)
        return
    for job in jobs:
        job()


@dataclass(frozen=True)
class _Team:
    """This thread and those of a pool."""

    pool: ThreadPoolExecutor
    count: int

    def map(self, work: Callable[[T], R], jobs: Sequence[T]) -> list[R]:
        """``work`` for all jobs; each thread takes the next one that nobody has taken."""
        left = iter(range(len(jobs)))
        found: dict[int, R] = {}

        def take() -> None:
            for number in left:
                found[number] = work(jobs[number])

        others = [self.pool.submit(take) for _ in range(min(self.count, len(jobs)) - 1)]
        try:
            take()
        finally:
            failures = [other.exception() for other in others]  # which waits for them
        for failure in failures:
            if failure is not None:
                raise failure
        return [found[number] for number in range(len(jobs))]


class _SideBySide(torch.autograd.Function):
    """Each part has a graph of its own, from its inputs and parameters to its output."""

    @staticmethod
    def forward(ctx: Any, parts: Sequence[Part], *_: Tensor) -> tuple[Tensor, ...]:
        ctx.team = _OF_THREAD.team
        ctx.graphs = ctx.team.map(_graph, parts)
        return tuple(graph.output.detach() for graph in ctx.graphs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        found = ctx.team.map(_gradients, list(zip(ctx.graphs, grads, strict=True)))
        ctx.graphs = None
        return (None, *(grad for part in reversed(found) for grad in part))


@dataclass(frozen=True)
class _Graph:
    """The graph of a part: its leaves, inputs before parameters, and its output."""

    leaves: Sequence[Tensor]
    output: Tensor


def _graph(part: Part) -> _Graph:
    inputs = [tensor.detach().requires_grad_(tensor.requires_grad) for tensor in part.inputs]
    with torch.enable_grad():
        return _Graph([*inputs, *part.parameters], part.function(*inputs))


def _gradients(of: tuple[_Graph, Tensor]) -> list[Tensor | None]:
    """The gradient at each leaf, None at those that need none."""
    graph, grad = of
    needed = [leaf for leaf in graph.leaves if leaf.requires_grad]
    found = iter(torch.autograd.grad(graph.output, needed, grad, allow_unused=True))
    return [next(found) if leaf.requires_grad else None for leaf in graph.leaves]
