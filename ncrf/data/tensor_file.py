"""safetensors files without torch: written piece by piece, and mapped into memory.

The format: eight bytes with the length of the header, the header in JSON (of every tensor its
type, shape, and place behind the header), then the numbers, little-endian.
Source: https://huggingface.co/docs/safetensors
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

HEADER_BYTES = 4096  # as much as is kept free for the header; a page, so that numbers are aligned
ROWS_AT_ONCE = 2000
_ROWS_KEPT = 200  # copied before memory is given up; each may have read 300 kB around it
LARGEST_HEADER = 100_000_000  # what the format allows

_TYPES = {"U8": "|u1", "U32": "<u4", "F16": "<f2", "F32": "<f4"}
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}

Tensor = npt.NDArray[Any]


class TensorWriter:
    """Writes a safetensors file of tensors whose lengths are not known before their end."""

    def __init__(self, file: IO[bytes]) -> None:
        """Begin at the start of a file that can go back there."""
        self._file = file
        self._header: dict[str, Any] = {}
        self._end = 0
        file.write(b" " * HEADER_BYTES)

    def add(self, name: str, piece: Tensor) -> None:
        """Write a tensor, or the next rows of the one that was written last."""
        if name not in self._header:
            self._header[name] = {
                "dtype": _NAMES[piece.dtype],
                "shape": [0, *piece.shape[1:]],
                "data_offsets": [self._end, self._end],
            }
        entry = self._header[name]
        assert entry["data_offsets"][1] == self._end and entry["shape"][1:] == [*piece.shape[1:]]
        self._file.write(np.ascontiguousarray(piece).data.cast("B") if piece.size else b"")
        self._end += piece.nbytes
        entry["shape"][0] += len(piece)
        entry["data_offsets"][1] = self._end

    def finish(self, metadata: Mapping[str, str]) -> None:
        """Write the header, with some strings beside the tensors."""
        header = json.dumps({"__metadata__": dict(metadata), **self._header}).encode("ascii")
        room = HEADER_BYTES - 8
        assert len(header) <= room
        self._file.seek(0)
        self._file.write(room.to_bytes(8, "little") + header.ljust(room))


class TensorMap:
    """The tensors of a file, mapped into memory and read-only, and the strings beside them."""

    def __init__(self, path: Path) -> None:
        """Read the header and map the rest.

        Raises OSError for a file that cannot be read, ValueError for one that is cut short or is
        otherwise no such file.
        """
        with open(path, "rb") as file:
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._unreleased = 0  # rows that were copied
        size = len(self._content)
        length = int.from_bytes(self._content[:8], "little")
        if size < 8 or length > min(LARGEST_HEADER, size - 8):
            raise ValueError("its header is cut short")
        self._start = 8 + length
        header = json.loads(self._content[8 : self._start])
        try:
            self.metadata: dict[str, str] = header.pop("__metadata__", {})
            self.tensors = {name: self._tensor(entry) for name, entry in header.items()}
            end = max((entry["data_offsets"][1] for entry in header.values()), default=0)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"its header is damaged: {error!r}") from error
        if self._start + end != size:
            raise ValueError("it is longer or shorter than its header says")

    def release(self) -> None:
        """Give up the memory that what was read so far takes; it is read again when needed."""
        self._unreleased = 0
        if hasattr(mmap, "MADV_DONTNEED"):
            self._content.madvise(mmap.MADV_DONTNEED)

    def _tensor(self, entry: Any) -> Tensor:
        kind, shape = np.dtype(_TYPES[entry["dtype"]]), tuple(entry["shape"])
        begin, end = entry["data_offsets"]
        count = math.prod(shape)
        room = len(self._content) - self._start
        fits = 0 <= begin <= end <= room and count * kind.itemsize == end - begin
        if not fits or min(shape, default=0) < 0:
            raise ValueError("its header contradicts itself")
        if not count:
            return np.zeros(shape, kind)
        return np.frombuffer(self._content, kind, count, self._start + begin).reshape(shape)

    def rows(self, name: str, rows: npt.NDArray[np.int64]) -> Tensor:
        """Copy some rows of a tensor; rising ``rows`` keep little of it in memory meanwhile."""
        tensor = self.tensors[name]
        copied = np.empty((len(rows), *tensor.shape[1:]), tensor.dtype)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            copied[part] = tensor[rows[part]]
            self._unreleased += len(rows[part])
            if self._unreleased >= _ROWS_KEPT:  # not after each few, which read the same pages
                self.release()
        return copied
