import gzip
import os
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest

from ncrf.data import text_files
from ncrf.data.text_files import open_text
from ncrf.errors import InputError


def lines_of(tmp_path: Path, content: bytes, name: str = "a.txt") -> list[tuple[int, str]]:
    path = tmp_path / name
    path.write_bytes(content)
    with open_text(path) as text:
        return list(text)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\xef\xbb\xbf", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"a\r\n\r\nb\r\n", ["a", "", "b"]),
        (b"a\r\nb\r", ["a", "b"]),
        (b"\xef\xbb\xbfa\nb", ["a", "b"]),
        (b"a\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
    ],
)
def test_line_ends_and_byte_order_mark(tmp_path, content, expected):
    assert lines_of(tmp_path, content) == list(enumerate(expected, 1))


def test_only_line_feeds_end_a_line(tmp_path):
    words = ["a\u2028b", "c\x85d", "e\x0bf", "g\x0ch", "i\rj", "k\x1cl", "\u3000", "\xa0"]
    content = "\n".join(words).encode()
    assert [line for _, line in lines_of(tmp_path, content)] == words


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
def test_blocks_may_end_anywhere(tmp_path, monkeypatch, block):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", block)
    content = "\ufeffzwölf\r\n\r\n\U0001f600 x\n\nend".encode()
    expected = ["zwölf", "", "\U0001f600 x", "", "end"]
    assert lines_of(tmp_path, content) == list(enumerate(expected, 1))


@pytest.mark.parametrize("block", [1, 5, 1 << 20])
@pytest.mark.parametrize(
    ("content", "first"),
    [
        (b"", ""),
        (b"\n \t\r\n", ""),
        (b"\xef\xbb\xbf\n\r\n \xc3\xa4 b\r\nc\n", " ä b"),
        (b"\n a", " a"),
        (b"\n \na\xff\n", "a\ufffd"),
    ],
)
def test_the_first_line_is_read_again(tmp_path, monkeypatch, block, content, first):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", block)
    path = tmp_path / "a"
    path.write_bytes(content)
    with open_text(path) as text:
        assert text.first_line() == first
        assert b"".join(data for _, _, data in text.byte_blocks()) == content


@pytest.mark.parametrize("block", [1, 5, 1 << 20])
def test_offsets_are_those_of_the_bytes(tmp_path, monkeypatch, block):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", block)
    content = "\ufeffä 1\n\r\nbcd 2\nü".encode()
    path = tmp_path / "a"
    path.write_bytes(content)
    with open_text(path) as text:
        found = [(number, offset, line) for number, offset, line in text.byte_lines()]
    assert [line for _, _, line in found] == ["ä 1".encode(), b"\r", b"bcd 2", "ü".encode()]
    assert [number for number, _, _ in found] == [1, 2, 3, 4]
    assert found[0][1] == 0
    for _, offset, line in found[1:]:
        assert content[offset:].startswith(line)


@pytest.mark.parametrize("block", [4, 1 << 20])
def test_invalid_utf8_is_reported_with_its_line_after_the_lines_before_it(
    tmp_path, monkeypatch, block
):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", block)
    path = tmp_path / "latin1.txt"
    path.write_bytes(b"good\nbetter\nM\xfcller\nnever\n")
    seen = []
    with open_text(path) as text, pytest.raises(InputError) as caught:
        seen.extend(iter(text))
    assert seen == [] or [line for _, line in seen] == ["good", "better"]
    with open_text(path) as text:
        walk = iter(text)
        assert [next(walk), next(walk)] == [(1, "good"), (2, "better")]
        with pytest.raises(InputError):
            next(walk)
    assert caught.value.line == 3
    assert str(caught.value).startswith(f"{path}:3: byte 0xfc is not valid UTF-8")


def test_gzip(tmp_path):
    content = gzip.compress("à\nb\n".encode())
    assert lines_of(tmp_path, content, "a.conll.gz") == [(1, "à"), (2, "b")]


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b"x" * 5000 + b"\n")[:-9]])
def test_damaged_gzip(tmp_path, content):
    with pytest.raises(InputError, match=r"a\.gz: cannot be read"):
        lines_of(tmp_path, content, "a.gz")


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(InputError, match="none: no such file"):
        open_text(tmp_path / "none")
    with pytest.raises(InputError, match="is a folder"):
        open_text(tmp_path)


def test_standard_input_is_handed_on_as_it_comes(monkeypatch):
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as sink:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stream))
        with open_text("-") as text:
            walk = iter(text)
            sink.write(b"one\ntw")
            assert next(walk) == (1, "one")
            sink.write(b"o\n")
            assert next(walk) == (2, "two")
            sink.write(b"bad \xff\n")
            with pytest.raises(InputError, match="<stdin>:3"):
                next(walk)
        assert not stream.closed


def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 1 << 14)
    path = tmp_path / "big"
    path.write_bytes(b"a line of some length\n" * 100_000)
    tracemalloc.start()
    with open_text(path) as text:
        assert sum(1 for _ in text) == 100_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500_000


def test_packed_text_without_its_name(tmp_path, monkeypatch):
    packed = gzip.compress(b"EU B-ORG\n")
    with pytest.raises(InputError, match=r"a\.txt:1: is packed by gzip \(a name that ends in \.gz"):
        lines_of(tmp_path, packed)
    with open(tmp_path / "a.txt", "rb") as stream:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stream))
        packed_input = pytest.raises(InputError, match=r"<stdin>:1: is packed by gzip .*gunzip")
        with open_text("-") as text, packed_input:
            list(text)
