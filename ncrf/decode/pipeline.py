"""Work on a stream of items in several threads, the results in order, memory bounded."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

_SWITCH = 0.0005  # seconds: a thread of short operations waits so long for one of long Python code

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """``work`` of each item, in the order of the items.

    With more than one thread, items are read while earlier ones are worked on, at most one more
    than there are threads. An error comes when the results before it have been taken.
    """
    if threads <= 1:
        yield from map(work, items)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads, "ncrf decode") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def sharing_cores(threads: int) -> Iterator[None]:
    """While entered, torch computes each operation in the thread that asks for it.

    Whole windows in several threads keep the cores busy better than single operations that are
    shared out, and do not suffer where another program wants a core. Nothing in the work makes
    circles of objects, so Python need not look for any.
    """
    before, interval, collecting = torch.get_num_threads(), sys.getswitchinterval(), gc.isenabled()
    gc.disable()
    if threads > 1:
        torch.set_num_threads(1)
        sys.setswitchinterval(_SWITCH)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        sys.setswitchinterval(interval)
        if collecting:
            gc.enable()
