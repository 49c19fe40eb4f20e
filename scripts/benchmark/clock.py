"""A clock on functions of another program: the seconds that each stage takes, from outside.

A stage is a set of functions, found by name. Time is counted once: what a function of one stage
spends inside a function of another is the other's. Names that are gone are skipped and said, so a
program may be rewritten under the clock.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any


class _Thread(threading.local):
    """The running functions of one thread: ``[stage, start, seconds in inner stages]``."""

    def __init__(self) -> None:
        self.running: list[list[Any]] = []


class Clock:
    """Adds up seconds and calls by stage: in the thread that made it, and in all others."""

    def __init__(self, synchronize: Callable[[], object] | None = None) -> None:
        """``synchronize`` waits for work that was only started, as on a GPU."""
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self.aside: dict[str, float] = {}
        self._synchronize = synchronize
        self._home = threading.get_ident()
        self._thread = _Thread()
        self._lock = threading.Lock()

    def enter(self, stage: str) -> None:
        """A function of the stage begins."""
        if self._synchronize is not None:
            self._synchronize()
        self._thread.running.append([stage, time.perf_counter(), 0.0])

    def leave(self, *, calls: int = 1) -> None:
        """The function that began last ends."""
        if self._synchronize is not None:
            self._synchronize()
        stage, start, inner = self._thread.running.pop()
        spent = time.perf_counter() - start
        if self._thread.running:
            self._thread.running[-1][2] += spent
        home = threading.get_ident() == self._home
        with self._lock:
            table = self.seconds if home else self.aside
            table[stage] = table.get(stage, 0.0) + spent - inner
            self.calls[stage] = self.calls.get(stage, 0) + calls

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, on the clock; a generator that it returns is too."""

        @functools.wraps(function)
        def on_the_clock(*arguments: Any, **named: Any) -> Any:
            self.enter(stage)
            try:
                result = function(*arguments, **named)
            finally:
                self.leave()
            return self._steps(stage, result) if inspect.isgenerator(result) else result

        return on_the_clock

    def _steps(self, stage: str, generator: Iterator[Any]) -> Iterator[Any]:
        while True:
            self.enter(stage)
            try:
                item = next(generator)
            except StopIteration:
                return
            finally:
                self.leave(calls=0)
            yield item


def watch(clock: Clock, stages: Mapping[str, Iterable[str]], package: str) -> list[str]:
    """Put functions on the clock; the names that were not found.

    A name is ``module:function``, ``module:Class.method`` (with the methods of subclasses that
    override it) or ``module:*`` (its public functions). A function is replaced in every loaded
    module of ``package``, so modules must be imported before.
    """
    lost = []
    for stage, names in stages.items():
        for name in names:
            if not _watch_name(clock, stage, name, package):
                lost.append(name)
    return lost


def _watch_name(clock: Clock, stage: str, name: str, package: str) -> bool:
    place, _, path = name.partition(":")
    try:
        module = importlib.import_module(place)
    except ImportError:
        return False
    if path == "*":
        own = [v for k, v in vars(module).items() if _is_own(v, module) and not k.startswith("_")]
        for function in own:
            _replace_function(clock, stage, function, module, package)
        return bool(own)
    first, _, method = path.partition(".")
    found = getattr(module, first, None)
    if method:
        return inspect.isclass(found) and _replace_method(clock, stage, found, method)
    if not callable(found):
        return False
    _replace_function(clock, stage, found, module, package)
    return True


def _is_own(value: object, module: ModuleType) -> bool:
    return isinstance(value, FunctionType) and value.__module__ == module.__name__


def _replace_function(
    clock: Clock, stage: str, function: Callable[..., Any], home: ModuleType, package: str
) -> None:
    """Put a function on the clock wherever a module of the package has it under some name."""
    timed = clock.timed(stage, function)
    loaded = [m for n, m in sys.modules.items() if n == package or n.startswith(f"{package}.")]
    for module in {home, *loaded}:
        for name in [name for name, value in vars(module).items() if value is function]:
            setattr(module, name, timed)


def _replace_method(clock: Clock, stage: str, owner: type, method: str) -> bool:
    """Put a method on the clock, in the class and in every subclass that has its own."""
    found = method in vars(owner)
    if found:
        kept = vars(owner)[method]
        inner = kept.__func__ if isinstance(kept, classmethod | staticmethod) else kept
        timed: Any = clock.timed(stage, inner)
        if isinstance(kept, classmethod | staticmethod):
            timed = type(kept)(timed)
        setattr(owner, method, timed)
    # type.__subclasses__ lists direct subclasses only; all must be visited.
    children: list[type] = type.__subclasses__(owner)
    below = [_replace_method(clock, stage, child, method) for child in children]
    return found or any(below)
