"""Text files as every reader here sees them: strict UTF-8, gzip, standard input."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import cast

from ncrf.errors import InputError

STANDARD_INPUT = "-"
BOM = b"\xef\xbb\xbf"
GZIP = b"\x1f\x8b"  # how its files begin, and no UTF-8
BLOCK_BYTES = 1 << 20
LONGEST_LINE = 1 << 24  # bytes; what is longer is no text, or was made to fill the memory


class TextFile:
    """An open text file: strict UTF-8, lines numbered from 1 and stripped of their ends.

    A line ends with LF or CRLF and with nothing else (U+2028, form feed and the like are
    ordinary characters). A byte order mark at the very start is dropped, the last line may lack
    its end, a name that ends in ``.gz`` is unpacked, ``-`` is standard input. Memory is bounded
    by one block, or by the longest line where that is longer; a line of more than 16 MiB is an
    InputError.
    """

    def __init__(self, path: str | Path) -> None:
        """Open ``path``; a missing or unreadable file is an InputError."""
        self.is_standard = str(path) == STANDARD_INPUT
        self.name = "<stdin>" if self.is_standard else str(path)
        self._unread = b""
        self._stream = (
            cast(BufferedReader, sys.stdin.buffer) if self.is_standard else open_bytes(path)
        )

    def __enter__(self) -> TextFile:
        """Return the file itself, to be closed at the end of the ``with`` block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if not self.is_standard:
            self._stream.close()

    def first_line(self) -> str:
        """The first line that holds more than spaces and tabs, "" if none; it is read again.

        To be asked for before anything was read.
        """
        read = b""
        while len(read) <= LONGEST_LINE and (block := self._read()):
            read += block
            if _first_filled(read[: read.rfind(b"\n") + 1]):
                break
        self._unread = read
        return _first_filled(read).removesuffix(b"\r").decode("utf-8", "replace")

    def byte_blocks(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield ``(number of the first line, offset of its first byte, whole lines as bytes)``.

        Every block ends with LF, only the last one may not. What a pipe has to give is handed
        on at once, so that lines typed or piped in are not held back.
        """
        pending: list[bytes] = []
        number, offset, length = 1, 0, 0
        while block := self._read():
            cut = block.rfind(b"\n") + 1
            if not cut:
                pending.append(block)
                length += len(block)
                if length > LONGEST_LINE:
                    raise self._too_long(number)
                continue
            data = b"".join([*pending, block[:cut]])
            pending = [block[cut:]]
            length = len(block) - cut
            yield number, offset, data
            number += data.count(b"\n")
            offset += len(data)
        if data := b"".join(pending):
            yield number, offset, data

    def byte_lines(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield ``(line number, offset of its first byte, line without its LF)``, undecoded."""
        for number, offset, data in self.byte_blocks():
            lines = data.removesuffix(b"\n").split(b"\n")
            if number == 1:
                yield number, offset, lines[0].removeprefix(BOM)
                offset += len(lines.pop(0)) + 1
                number += 1
            for line in lines:
                yield number, offset, line
                number += 1
                offset += len(line) + 1

    def blocks(self) -> Iterator[tuple[int, list[str]]]:
        """Yield ``(number of the first line, lines)``, a bounded number of lines at a time.

        Bytes that are not UTF-8 are an InputError with the line; the lines before it are
        yielded first, so that whichever mistake stands first in the file is the one reported.
        """
        for number, _, data in self.byte_blocks():
            if number == 1:
                data = data.removeprefix(BOM)
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError as error:
                whole = data.rfind(b"\n", 0, error.start) + 1
                if whole:
                    yield number, split_lines(data[:whole].decode("utf-8"))
                if number == 1 and data.startswith(GZIP):
                    raise self._packed() from None
                line = number + data.count(b"\n", 0, error.start)
                raise invalid_utf8(self.name, line, data[error.start]) from None
            if text:
                yield number, split_lines(text)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Yield ``(line number, line)``."""
        for first, lines in self.blocks():
            yield from enumerate(lines, first)

    def _packed(self) -> InputError:
        remedy = "a name that ends in .gz, or text as gunzip -c gives it"
        return InputError("is packed by gzip", file=self.name, line=1, remedy=remedy)

    def _too_long(self, line: int) -> InputError:
        return InputError(
            f"a line of more than {LONGEST_LINE:,} bytes",
            file=self.name,
            line=line,
            remedy="a text file, with a line for each word or sentence",
        )

    def _read(self) -> bytes:
        if self._unread:
            block, self._unread = self._unread, b""
            return block
        try:
            return self._stream.read1(BLOCK_BYTES)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"cannot be read: {_reason(error)}", file=self.name) from error


def open_text(path: str | Path) -> TextFile:
    """Open ``path`` for reading as text; see :class:`TextFile`."""
    return TextFile(path)


def open_bytes(path: str | Path) -> BufferedReader:
    """Open ``path`` for reading as bytes, unpacked where its name ends in ``.gz``."""
    try:
        if str(path).endswith(".gz"):
            return cast(BufferedReader, gzip.open(path, "rb"))
        return open(path, "rb")
    except FileNotFoundError:
        raise InputError("no such file", file=path, remedy="check the path") from None
    except IsADirectoryError:
        raise InputError("is a folder", file=path, remedy="name a file") from None
    except OSError as error:
        raise InputError(f"cannot be read: {_reason(error)}", file=path) from error


def _first_filled(data: bytes) -> bytes:
    """The first line that holds more than spaces and tabs."""
    return next((x for x in data.removeprefix(BOM).split(b"\n") if x.strip(b" \t\r")), b"")


def split_lines(text: str) -> list[str]:
    """Split ``text`` at LF and CRLF; a line end at the very end opens no further line."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").removesuffix("\r")
    return text.removesuffix("\n").split("\n")


def invalid_utf8(file: str | Path, line: int, byte: int) -> InputError:
    """Return the error for a byte that is not UTF-8."""
    return InputError(
        f"byte 0x{byte:02x} is not valid UTF-8", file=file, line=line, remedy="save it as UTF-8"
    )


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
