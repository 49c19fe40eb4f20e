"""What is kept of vector files: found again, never wrong, and never in the way."""

import errno
import gzip
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
import tracemalloc
from collections import namedtuple

import numpy as np
import pytest

from ncrf.data import (
    cache_folder,
    mapped_vectors,
    text_files,
    vector_cache,
    vector_files,
    vector_text,
)
from ncrf.data.cache_folder import CacheFolder, SourceFile, file_state
from ncrf.data.mapped_vectors import MappedVectors
from ncrf.data.vector_files import VectorFile, read_vectors
from ncrf.errors import InputError

WORDS = ["the", "Paris", "paris", "new york", "naïve", "東京", "a\x0bb", "1990"]


def rows_of(words, seed=0, width=4):
    """Words with numbers that text writes exactly."""
    numbers = np.random.default_rng(seed).integers(-99, 100, (len(words), width)) / 8
    return dict(zip(words, numbers.tolist(), strict=True))


def text_of(rows) -> bytes:
    return "".join(f"{w} {' '.join(map(str, row))}\n" for w, row in rows.items()).encode()


ROWS = rows_of(WORDS)


@pytest.fixture(autouse=True)
def users(tmp_path, monkeypatch):
    """The user's cache folder; and every file is large enough."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(vector_cache, "SMALLEST", 1)
    return tmp_path / "xdg" / "ncrf"


@pytest.fixture
def path(tmp_path):
    (tmp_path / "vectors").mkdir()
    path = tmp_path / "vectors" / "v.txt"
    path.write_bytes(text_of(ROWS))
    return path


@pytest.fixture
def settled(monkeypatch):
    """A file may have been changed just now."""
    monkeypatch.setattr(cache_folder, "SETTLED", -(10**12))


def kept(folder):
    return sorted(p.name for p in folder.glob("*.safetensors"))


def left(folder):
    return sorted(p.name for p in folder.iterdir() if p.name not in cache_folder.MARKS)


def as_lists(table):
    return {word: table.matrix[row].tolist() for word, row in table.index.items()}


def read(path, cache="auto"):
    """All vectors, in three ways that have to agree."""
    file = VectorFile(path, WORDS[:2], cache)
    assert as_lists(file.table) == {
        w: r for w, r in as_lists(file.everything()).items() if w in {*WORDS[:2], "paris"}
    }
    everything = as_lists(read_vectors(path, cache=cache))
    assert {w: as_lists(file.rows([w]))[w] for w in everything} == everything
    assert not file.rows(["nowhere", "\ud800"]).index
    return everything


def without_reading(monkeypatch):
    """From now on no vector file may be gone through."""
    for name in ("TextRows", "read_binary"):
        monkeypatch.setattr(vector_files, name, lambda *_: pytest.fail("the file was read again"))


# Found again


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz", "v.bin"])
def test_the_second_time_nothing_is_read(path, name, monkeypatch):
    path = path.with_name(name)
    rows = {word: row for word, row in ROWS.items() if " " not in word}
    if name == "v.bin":
        head = b"%d 4\n" % len(rows)
        packed = (f"{w} ".encode() + np.array(r, "<f4").tobytes() for w, r in rows.items())
        path.write_bytes(head + b"".join(packed))
    else:
        path.write_bytes(gzip.compress(text_of(rows)) if name.endswith("gz") else text_of(rows))
    assert read(path) == rows
    without_reading(monkeypatch)
    assert read(path) == rows
    assert len(kept(path.parent / ".ncrf_cache")) == 1


def test_nor_digested_if_its_state_is_the_recorded_one(path, monkeypatch, settled):
    read(path)
    monkeypatch.setattr(SourceFile, "digest", property(lambda _: pytest.fail("digested")))
    assert read(path) == ROWS


def test_the_content_counts_not_the_name_or_the_time(path, monkeypatch, settled):
    read(path)
    other = path.with_name("other.txt")
    shutil.copy(path, other)
    os.utime(path, (1, 1))
    linked = path.parent.parent / "link.txt"
    linked.symlink_to(path)
    without_reading(monkeypatch)
    for name in (path, other, linked):
        assert read(name) == ROWS
    monkeypatch.setattr(SourceFile, "digest", property(lambda _: pytest.fail("digested")))
    for name in (path, other, linked):  # what was found out was noted
        assert read(name) == ROWS


def test_another_ending_is_another_way_to_read(path):
    packed = path.with_name("v.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read(packed) == ROWS
    plain = path.with_name("plain")
    shutil.copy(packed, plain)
    with pytest.raises(InputError):
        read(plain)


@pytest.mark.parametrize("same_time", [False, True])
def test_a_changed_file_is_read_anew(path, same_time, settled):
    read(path)
    state = path.stat()
    rows = dict(zip(WORDS, reversed(ROWS.values()), strict=True))
    other = text_of(rows)
    assert len(other) == state.st_size and rows != ROWS
    path.write_bytes(other)
    if same_time:
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert read(path) == rows
    assert len(kept(path.parent / ".ncrf_cache")) == 1  # what nobody has any more went


def test_what_another_file_still_holds_stays(path, settled, monkeypatch):
    other = path.with_name("other.txt")
    shutil.copy(path, other)
    read(path)
    read(other)
    path.write_bytes(text_of(rows_of(WORDS, seed=1)))
    read(path)
    assert len(kept(path.parent / ".ncrf_cache")) == 2
    without_reading(monkeypatch)
    assert read(other) == ROWS


def test_a_state_counts_only_if_a_later_change_would_show(path):
    folder = CacheFolder(path.parent)
    changed_ns = file_state(path).ctime_ns
    for seen_ns, expected in ((changed_ns + 10**9, False), (changed_ns + 3 * 10**9, True)):
        source = SourceFile(path, path, file_state(path), seen_ns)
        folder.record(source)
        assert folder.recorded(SourceFile.at(path)) == (source.digest if expected else None)


def test_words_of_a_cached_file_that_stand_there_twice(path):
    path.write_bytes(b"a 1 2\nb 3 4\na 5 6\nc 7 8\n")
    for _ in range(2):
        assert as_lists(read_vectors(path, cache="auto")) == {"a": [1, 2], "b": [3, 4], "c": [7, 8]}
        assert read_vectors(path, cache="auto").matrix.shape == (3, 2)
        assert as_lists(VectorFile(path, "a", "auto").table) == {"a": [1, 2]}


def test_what_the_header_says_is_checked_every_time(path, caplog):
    path.write_bytes(b"9 4\n" + text_of(ROWS))
    for _ in range(2):
        caplog.clear()
        VectorFile(path, cache="auto")
        assert caplog.text.count("the header says 9 rows, there are 8") == 1


# Where


def test_a_small_file_is_not_kept(path, monkeypatch):
    monkeypatch.setattr(vector_cache, "SMALLEST", path.stat().st_size + 1)
    assert read(path) == ROWS
    assert left(path.parent) == ["v.txt"]


def test_off(path, users):
    assert read(path, "off") == ROWS
    assert left(path.parent) == ["v.txt"] and not users.exists()


def test_a_folder_of_ones_choice(path, tmp_path, users, monkeypatch):
    place = tmp_path / "new" / "folder"
    assert read(path, str(place)) == ROWS
    assert left(path.parent) == ["v.txt"] and not users.exists() and len(kept(place)) == 1
    without_reading(monkeypatch)
    assert read(path, str(place)) == ROWS


def block_folder(path):
    """Nothing can be kept beside this file; unlike a mode, this stops root, too."""
    (path.parent / ".ncrf_cache").write_text("")


def test_where_nothing_can_be_kept_beside_the_users_folder_is_taken(path, users, monkeypatch):
    block_folder(path)
    assert read(path) == ROWS and len(kept(users)) == 1
    without_reading(monkeypatch)
    assert read(path) == ROWS


@pytest.mark.parametrize("variable", ["", "relative/folder"])
def test_the_users_folder_without_its_variable(path, tmp_path, variable, monkeypatch):
    block_folder(path)
    monkeypatch.setenv("XDG_CACHE_HOME", variable)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    read(path)
    assert len(kept(tmp_path / "home" / ".cache" / "ncrf")) == 1


def test_a_folder_is_marked_as_a_cache(path):
    read(path)
    folder = path.parent / ".ncrf_cache"
    assert (folder / ".gitignore").read_text() == "*\n"
    assert (folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886")


# Never in the way


def test_nowhere_to_keep_it(path, tmp_path, monkeypatch, caplog):
    block_folder(path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(path))  # a file
    with caplog.at_level(logging.INFO):
        assert read(path) == ROWS
    assert "cannot be kept" in caplog.text and "WARNING" not in caplog.text
    assert read(path, str(path)) == ROWS
    assert "WARNING" in caplog.text  # for a folder that was asked for


def test_too_little_room(path, users, monkeypatch, caplog):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10))
    with caplog.at_level(logging.INFO):
        assert read(path) == ROWS
    assert "too little room" in caplog.text
    assert not left(path.parent / ".ncrf_cache") and not left(users)


def test_a_disk_that_is_full_before_the_end(path, users, monkeypatch):
    def write(file, vectors):
        file.write(b"x" * 1000)
        next(iter(vectors))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(MappedVectors, "write", write)
    assert read(path) == ROWS
    assert not left(path.parent / ".ncrf_cache") and not left(users)


def test_a_row_at_fault_is_said_with_its_line_and_nothing_is_kept(path):
    path.write_bytes(text_of(ROWS) + b"bad 1 2 3\n")
    for _ in range(2):
        with pytest.raises(InputError, match="3 numbers found, expected 4") as caught:
            VectorFile(path, cache="auto")
        assert (caught.value.file, caught.value.line) == (str(path), len(ROWS) + 1)
        assert not left(path.parent / ".ncrf_cache")
    path.write_bytes(text_of(ROWS))
    assert read(path) == ROWS


def test_a_file_that_changes_while_it_is_read(path, monkeypatch):
    original = MappedVectors.write

    def write(file, vectors):
        original(file, vectors)
        path.write_bytes(text_of(rows_of(WORDS, seed=1)))

    monkeypatch.setattr(MappedVectors, "write", write)
    with pytest.raises(InputError, match="changed while it was in use"):
        VectorFile(path, cache="auto")
    assert not left(path.parent / ".ncrf_cache")


def test_an_unfinished_file_of_a_killed_process_goes(path):
    folder = path.parent / ".ncrf_cache"
    folder.mkdir()
    for name, age in (("old.tmp", 10**6), ("new.tmp", 10)):
        (folder / name).write_text("")
        os.utime(folder / name, (time.time() - age,) * 2)
    read(path)
    assert [name for name in left(folder) if name.endswith(".tmp")] == ["new.tmp"]


# Never wrong


def flip(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


DAMAGES = {
    "cut short": lambda data: data[:-1],
    "a piece of it": lambda data: data[:100],
    "a few bytes": lambda data: data[:5],
    "empty": lambda data: b"",
    "longer": lambda data: data + b"x",
    "zeros": lambda data: bytes(len(data)),
    "another file": lambda data: b"PK\x03\x04" * (len(data) // 4),
    "header": lambda data: flip(data, 40),
    "no metadata": lambda data: data.replace(b'"index_checksum"', b'"index_checkXXX"'),
    "first number": lambda data: flip(data, 4096),
    "last number": lambda data: flip(data, 4096 + len(WORDS) * 16 - 1),
    "last word": lambda data: flip(data, len(data) - 1),
    "all numbers": lambda data: data[:4096] + bytes(len(WORDS) * 16) + data[4224:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_seen_and_made_good(path, damage, caplog, settled):
    read(path)
    folder = path.parent / ".ncrf_cache"
    (name,) = kept(folder)
    whole = (folder / name).read_bytes()
    damaged = DAMAGES[damage](whole)
    assert damaged != whole
    (folder / name).write_bytes(damaged)
    assert as_lists(VectorFile(path, WORDS, "auto").table) == ROWS
    assert read(path) == ROWS
    assert "damaged" in caplog.text
    assert (folder / name).read_bytes() == whole


def test_damage_that_only_a_whole_reading_meets(path):
    read(path)
    (file,) = (path.parent / ".ncrf_cache").glob("*.safetensors")
    file.write_bytes(flip(file.read_bytes(), 4096))  # in the row of "the"
    assert as_lists(VectorFile(path, ["1990"], "auto").table) == {"1990": ROWS["1990"]}
    assert as_lists(read_vectors(path, cache="auto")) == ROWS
    assert not file.exists()


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"seen_ns": "x"}'])
def test_a_damaged_record_is_made_anew(path, content, settled, monkeypatch):
    read(path)
    (record,) = (path.parent / ".ncrf_cache").glob("*.json")
    good = json.loads(record.read_bytes())
    record.write_bytes(content)
    without_reading(monkeypatch)
    assert read(path) == ROWS
    assert json.loads(record.read_bytes())["state"] == good["state"]


def test_a_kept_file_that_went(path):
    read(path)
    for file in (path.parent / ".ncrf_cache").glob("*.safetensors"):
        file.unlink()
    assert read(path) == ROWS


def test_several_threads_and_processes_at_once(path):
    rows = rows_of([f"w{i}" for i in range(3000)])
    path.write_bytes(text_of(rows))
    code = (
        "import sys; from ncrf.data import vector_cache; vector_cache.SMALLEST = 1\n"
        "from ncrf.data.vector_files import VectorFile\n"
        "print(VectorFile(sys.argv[1], ['w7'], 'auto').table.matrix.tolist())"
    )
    command = [sys.executable, "-c", code, str(path)]
    others = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    files, right = [], []

    def ask(start):
        file = VectorFile(path, cache="auto")
        files.append(file)
        right.extend(as_lists(file.rows([w])) == {w: rows[w]} for w in list(rows)[start::40])

    threads = [threading.Thread(target=ask, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(files) == 4 and all(right)
    assert [other.communicate()[0] for other in others] == [f"[{rows['w7']}]\n"] * 2
    folder = path.parent / ".ncrf_cache"
    assert len(kept(folder)) == 1 and not list(folder.glob("*.tmp"))


# Memory


def test_the_matrix_is_never_in_memory(path, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 1 << 14)
    monkeypatch.setattr(vector_text, "SETTLING_ROWS", 100)
    monkeypatch.setattr(vector_text, "BLOCK_NUMBERS", 1000)
    monkeypatch.setattr(mapped_vectors, "CHECKED_ROWS", 100)
    path.write_bytes(text_of(rows_of([f"w{i}" for i in range(4000)], width=100)))
    matrix = 4000 * 100 * 4
    VectorFile(path, cache="off")  # what is imported and set up only once
    for _ in range(2):
        tracemalloc.start()
        table = VectorFile(path, ["w7"], "auto").everything()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # A block of text, and what is known of each word: its bytes, its hash, its place.
        assert peak < matrix, peak
        assert table.matrix.nbytes == matrix and not table.matrix.flags.owndata
