"""Files of tensors, written in pieces and mapped; safetensors itself is the judge."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from ncrf.data import tensor_file
from ncrf.data.tensor_file import TensorMap, TensorWriter

RNG = np.random.default_rng(0)
TENSORS = {
    "matrix": RNG.normal(size=(7, 3)).astype(np.float32),
    "half": RNG.normal(size=(7, 3)).astype(np.float16),
    "numbers": RNG.integers(0, 2**32, 7, np.uint32),
    "bytes": np.frombuffer(b"odd", np.uint8),
    "nothing": np.zeros((0, 3), np.float32),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file.safetensors"
    with open(path, "wb") as file:
        writer = TensorWriter(file)
        for name, tensor in TENSORS.items():
            for start in range(0, max(1, len(tensor)), 2):
                writer.add(name, tensor[start : start + 2])
        writer.finish({"note": "ü"})
    return path


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape)
        np.testing.assert_array_equal(found[name], tensor)


def test_what_is_written_is_a_safetensors_file(path):
    assert_equal(load_file(path), TENSORS)
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"note": "ü"}


def test_what_is_written_is_mapped(path):
    mapped = TensorMap(path)
    assert_equal(mapped.tensors, TENSORS)
    assert mapped.metadata == {"note": "ü"}
    for tensor in mapped.tensors.values():
        assert not tensor.size or not (tensor.flags.owndata or tensor.flags.writeable)


def test_a_file_of_safetensors_is_mapped(tmp_path):
    save_file(TENSORS, tmp_path / "theirs")
    mapped = TensorMap(tmp_path / "theirs")
    assert_equal(mapped.tensors, TENSORS)
    assert mapped.metadata == {}


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_rows(path, at_once, monkeypatch):
    monkeypatch.setattr(tensor_file, "ROWS_AT_ONCE", at_once)
    mapped = TensorMap(path)
    for rows in ([0, 3, 3, 6], [], [6, 0]):
        found = mapped.rows("matrix", np.array(rows, np.int64))
        np.testing.assert_array_equal(found, TENSORS["matrix"][rows])


def test_memory_is_given_up_after_so_many_rows_not_at_every_call(path, monkeypatch):
    monkeypatch.setattr(tensor_file, "ROWS_AT_ONCE", 5)
    monkeypatch.setattr(tensor_file, "_ROWS_KEPT", 4)
    mapped = TensorMap(path)
    release, released = mapped.release, []
    monkeypatch.setattr(mapped, "release", lambda: (released.append(done), release()))
    for done in range(1, 9):  # noqa: B007 - told by release
        mapped.rows("matrix", np.array([0, 3, 6], np.int64))
    assert released == [2, 4, 6, 8]
    for done in range(9, 11):  # noqa: B007
        mapped.rows("matrix", np.zeros(10, np.int64))
    assert released[4:] == [9, 9, 10, 10]


def entry(**changes):
    return {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16], **changes}


@pytest.mark.parametrize(
    "header",
    [
        [],
        {"x": 3},
        {"x": {}},
        {"x": entry(dtype="F8")},
        {"x": entry(shape=[2, 3])},
        {"x": entry(shape=[-2, -2])},
        {"x": entry(shape=["2", 2])},
        {"x": entry(data_offsets=[0, 32], shape=[2, 4])},
        {"x": entry(data_offsets=[-16, 0])},
        {"x": entry(data_offsets=[0, 8], shape=[1, 2])},
    ],
)
def test_a_header_that_is_none(tmp_path, header):
    text = json.dumps(header).encode()
    path = tmp_path / "file"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(16))
    with pytest.raises(ValueError, match="header"):
        TensorMap(path)


@pytest.mark.parametrize(
    "content", [b"", b"abc", bytes(7), b"\xff" * 8, (50).to_bytes(8, "little") + b"{}", bytes(8)]
)
def test_a_file_that_is_none(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError):
        TensorMap(tmp_path / "file")


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        TensorMap(tmp_path / "none")
