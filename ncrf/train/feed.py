"""The batches of an epoch, made ahead of the network that waits for them."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from ncrf.data.batch import (
    Batch,
    UnknownReplacement,
    make_batch,
    pieces,
    split_by_length,
    training_batches,
)
from ncrf.data.dataset import Dataset, IntArray
from ncrf.errors import InputError

logger = logging.getLogger(__name__)

_AHEAD = 4  # steps that are ready before they are needed
_TOGETHER = 8  # steps that are made at once
_END = object()
_STOP_CHECK = 0.1  # seconds between two looks at whether somebody still reads

T = TypeVar("T")


@dataclass(frozen=True)
class Step:
    """What one optimizer step needs: its sentence numbers and its batches, mostly a single one."""

    rows: IntArray
    batches: list[Batch]


@dataclass(frozen=True)
class Feed:
    """Makes the steps of any epoch: what is random follows from seed, epoch and step alone.

    ``rows`` names the sentences of ``dataset`` to train on; ``possible`` and ``replacement`` are
    those of make_batch. A step whose padded size exceeds ``max_tokens`` comes in pieces,
    and, where ``spared`` is set, one of which a piece more spares so many tokens of padding.
    """

    dataset: Dataset
    rows: IntArray
    batch_size: int
    bucket: bool
    max_tokens: int
    max_word_length: int
    seed: int
    possible: NDArray[np.bool_] | None = None
    replacement: UnknownReplacement | None = None
    spared: int | None = None

    @cached_property
    def _lengths(self) -> IntArray:
        return self.dataset.lengths

    def order(self, epoch: int) -> list[IntArray]:
        """The sentence numbers of each step of an epoch; every sentence stands there once."""
        rng = np.random.default_rng((self.seed, epoch))
        lengths = self._lengths[self.rows]
        batches = training_batches(lengths, self.batch_size, self.bucket, rng)
        return [self.rows[batch] for batch in batches]

    def steps(self, epoch: int, start: int, device: torch.device) -> Iterator[Step]:
        """The steps of an epoch from number ``start`` on, their tensors on ``device``.

        A few are made together: what they are made with is then still in the processor's caches,
        and one takes half the time that it takes between two steps of training.
        """
        numbered = iter(list(enumerate(self.order(epoch)))[start:])
        while some := list(islice(numbered, _TOGETHER)):
            yield from [self._step(epoch, number, rows, device) for number, rows in some]

    def _step(self, epoch: int, number: int, rows: IntArray, device: torch.device) -> Step:
        rng = np.random.default_rng((self.seed, epoch, number))
        return Step(rows, [self._batch(part, rng, device) for part in self._pieces(rows)])

    def _pieces(self, rows: IntArray) -> list[IntArray]:
        parts = [rows]
        if self.spared is not None:
            parts = split_by_length(rows, self._lengths, self.spared)
        return [fitting for part in parts for fitting in self._fitting(part)]

    def _fitting(self, rows: IntArray) -> list[IntArray]:
        if int(self._lengths[rows].max()) * len(rows) <= self.max_tokens:
            return [rows]
        return list(pieces(rows, self._lengths, self.max_tokens))

    def _batch(self, rows: IntArray, rng: np.random.Generator, device: torch.device) -> Batch:
        batch = make_batch(
            self.dataset,
            rows,
            max_word_length=self.max_word_length,
            possible=self.possible,
            replacement=self.replacement,
            rng=rng,
        )
        return batch.to(device)


def usable_sentences(train: Dataset, longest: int | None) -> IntArray:
    """The numbers of the sentences that have words, but no more than ``longest``.

    Says how many are left out. InputError where none is left.
    """
    lengths = train.lengths
    usable = lengths > 0
    if longest is not None:
        usable &= lengths <= longest
        skipped = int((lengths > longest).sum())
        if skipped:
            logger.warning(
                "training skips %d of %d sentences: longer than MAX_SENTENCE_LENGTH=%d",
                skipped,
                len(lengths),
                longest,
            )
    rows = np.flatnonzero(usable)
    if not len(rows):
        raise InputError(
            "no sentence to train on",
            file=train.file,
            remedy="a larger MAX_SENTENCE_LENGTH" if longest is not None else None,
        )
    return rows


@contextmanager
def ahead(items: Callable[[], Iterable[T]]) -> Iterator[Iterator[T]]:
    """Iterate in a thread of its own, a few items ahead of who reads them.

    What is raised there is raised here; when the reader stops, so does the thread.
    """
    ready: queue.Queue[object] = queue.Queue(_AHEAD)
    stopped = threading.Event()

    def put(item: object) -> bool:
        while not stopped.is_set():
            try:
                ready.put(item, timeout=_STOP_CHECK)
            except queue.Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for item in items():
                if not put(item):
                    return
            put(_END)
        except BaseException as error:  # raised again where it is read
            put(error)

    def read() -> Generator[T, None, None]:
        while (item := ready.get()) is not _END:
            if isinstance(item, BaseException):
                raise item
            yield item  # type: ignore[misc]

    thread = threading.Thread(target=work, name="ncrf batches", daemon=True)
    thread.start()
    try:
        with closing(read()) as items_read:
            yield items_read
    finally:
        stopped.set()
        thread.join()
