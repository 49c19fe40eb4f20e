"""Labels as decoding writes them: in the output scheme, whole batches at a time."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from ncrf.data.dataset import IntArray
from ncrf.data.schemes import convert

_MOST_CONTEXTS = 1 << 22  # entries of the table by previous, present and next label


class WrittenLabels:
    """Label ids of the model's scheme ``target`` to strings of the scheme ``output``.

    In a well-formed labeling, how a label is written follows from it and its neighbours; which
    string that is is found out once for each such context.
    """

    def __init__(self, labels: tuple[str, ...], target: str, output: str, delimiter: str) -> None:
        self._labels = labels
        self._convert = (target, output, delimiter)
        self._same = target == output
        self._strings = np.array(labels, dtype=object)
        self._places: dict[str, int] = {}
        self._lock = threading.Lock()
        size = len(labels)
        contexts = (size + 1) * size * (size + 1)
        self._known = np.full(contexts, -1, np.int32) if contexts <= _MOST_CONTEXTS else None

    def write(self, paths: IntArray, lengths: list[int]) -> list[list[list[str]]]:
        """The strings of ``paths [B,N,L]``, for each row and labeling its first ``length``."""
        if self._same or self._known is None:
            strings = self._strings[paths].tolist()
            rows = [
                [path[:length] for path in row]
                for row, length in zip(strings, lengths, strict=True)
            ]
            if self._same:
                return rows
            return [[convert(path, *self._convert) for path in row] for row in rows]
        places = self._in_context(paths, np.array(lengths))
        strings = np.array(list(self._places), dtype=object)[places].tolist()
        return [
            [path[:length] for path in row] for row, length in zip(strings, lengths, strict=True)
        ]

    def _in_context(self, paths: IntArray, lengths: IntArray) -> NDArray[np.int32]:
        """The place of each string among those that are known, ``[B,N,L]``; any beyond the end."""
        assert self._known is not None
        border = len(self._labels)
        before = np.full_like(paths, border)
        before[..., 1:] = paths[..., :-1]
        after = np.full_like(paths, border)
        after[..., :-1] = paths[..., 1:]
        after[np.arange(len(paths)), :, lengths - 1] = border
        contexts = (before * border + paths) * (border + 1) + after
        within = np.arange(paths.shape[2]) < lengths[:, None, None]
        contexts[~np.broadcast_to(within, contexts.shape)] = border * border * (border + 1)
        places: NDArray[np.int32] = self._known[contexts]
        if (places < 0).any():
            with self._lock:
                for context in np.unique(contexts[places < 0]).tolist():
                    self._known[context] = self._place(context)
            places = self._known[contexts]
        return places

    def _place(self, context: int) -> int:
        """The place of the string that a label has between its neighbours."""
        border = len(self._labels)
        rest, after = divmod(context, border + 1)
        before, label = divmod(rest, border)
        around = [self._labels[i] for i in (before, label, after) if i < border]
        string = convert(around, *self._convert)[1 if before < border else 0]
        return self._places.setdefault(string, len(self._places))
