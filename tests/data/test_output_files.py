"""Output appears whole or not at all, and nothing that was there is damaged."""

import gzip
import os
import threading

import pytest

from ncrf.data.output_files import replacing, write_file
from ncrf.errors import NcrfError


def test_a_new_file_in_a_new_folder(tmp_path):
    with replacing(tmp_path / "a" / "b" / "out") as file:
        file.write("é\n")
    assert (tmp_path / "a" / "b" / "out").read_bytes() == "é\n".encode()


def test_the_old_file_stays_where_writing_fails(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write("half")
        file.flush()
        assert path.read_text() == "old"
        _ = 1 / 0
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["out"]


def test_a_full_disk_is_named_and_the_old_file_stays(tmp_path, monkeypatch):
    path = tmp_path / "out"
    path.write_text("old")

    def no_space(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", no_space)
    with pytest.raises(NcrfError, match=f"{path}: cannot be written: No space left"):
        write_file(path, b"new")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["out"]


def test_a_path_below_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NcrfError, match="cannot be written"):
        write_file(tmp_path / "file" / "out", b"")


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == "new"


def test_gz_is_packed(tmp_path):
    with replacing(tmp_path / "out.gz") as file:
        file.write("text")
    with gzip.open(tmp_path / "out.gz", "rt") as file:
        assert file.read() == "text"


def test_a_pipe_is_written_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_file(pipe, b"through")
    reader.join(10)
    assert read == ["through"] and pipe.is_fifo()


def test_the_same_text_packs_to_the_same_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        with replacing(tmp_path / name) as file:
            file.write("text")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_a_new_file_has_the_permissions_of_the_old_one(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(0o640)
    write_file(path, b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)


def test_folders_that_were_made_for_nothing_go_again(tmp_path):
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "a" / "b" / "out"):
        _ = 1 / 0
    assert os.listdir(tmp_path) == []


def test_two_threads_write_one_file(tmp_path):
    """Each writes its own; the one that ends last is there, whole."""
    path, start = tmp_path / "out", threading.Barrier(2)

    def write(letter):
        with replacing(path) as file:
            start.wait(10)
            for _ in range(1000):
                file.write(letter * 100)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in ("a" * 100_000, "b" * 100_000)
    assert os.listdir(tmp_path) == ["out"]


def test_a_name_of_the_greatest_length(tmp_path):
    path = tmp_path / ("é" * 127)
    write_file(path, b"content")
    assert path.read_bytes() == b"content"
