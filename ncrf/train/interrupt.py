"""Ctrl-C in training: the step under way is finished and what was learned is written."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupt:
    """While it is entered, the first Ctrl-C is only noted, the second one interrupts at once.

    Outside the main thread, where signals cannot be received, it does nothing.
    """

    def __init__(self) -> None:
        self.wanted = False
        self._before: Any = None

    def __enter__(self) -> Interrupt:
        """Begin to note."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGINT)
            if self._before in (signal.default_int_handler, None):
                self._before = signal.signal(signal.SIGINT, self._note)
            else:
                self._before = None  # somebody else looks after it
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let Ctrl-C do what it did before."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.wanted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def raise_if_wanted(self) -> None:
        """KeyboardInterrupt, if it was noted."""
        if self.wanted:
            raise KeyboardInterrupt
