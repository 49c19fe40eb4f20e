"""Checksums of a model folder: every damage is named, older folders are read, readers never err."""

import json
import shutil
import threading

import pytest
import torch

from ncrf import Tagger
from ncrf.cli import main
from ncrf.errors import InputError
from ncrf.model import folder, manifest
from ncrf.model.manifest import MANIFEST, read_file, update, waiting
from ncrf.train import checkpoint
from ncrf.train.minibatch import Trainer
from tests.conftest import SAMPLE, small_keys

FILES = ("config.yaml", "alphabets.json", "model.safetensors", "history.jsonl", MANIFEST)


@pytest.fixture
def model(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "model")


@pytest.fixture
def small(tmp_path):
    """A folder with a manifest and two small files."""
    place = tmp_path / "small"
    place.mkdir()
    update(place, {"a": b"some content", "b": b""})
    return place


def flipped(content, at, bit=0x10):
    return content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]


def read_all(place):
    return {name: read_file(place, name) for name in ("a", "b")}


class TestEveryDamageIsNamed:
    @pytest.mark.parametrize("name", ["a", MANIFEST])
    def test_any_byte_that_is_flipped(self, small, name):
        path = small / name
        whole = path.read_bytes()
        expected = read_all(small)
        for at in range(len(whole)):
            for bit in (0x01, 0x80):
                path.write_bytes(flipped(whole, at, bit))
                try:  # a flipped blank between two marks of JSON may change nothing
                    assert read_all(small) == expected and name == MANIFEST and whole[at] in b" \n"
                except InputError as error:
                    assert str(error).startswith((f"{path}: is damaged", f"{path}: has format"))

    @pytest.mark.parametrize("name", ["a", MANIFEST])
    def test_a_file_cut_at_any_place_or_with_more_at_its_end(self, small, name):
        path = small / name
        whole = path.read_bytes()
        for content in [whole[:end] for end in range(len(whole) - 1)] + [whole + b"x"]:
            path.write_bytes(content)
            with pytest.raises(InputError, match=f"^{path}: is damaged"):
                read_all(small)

    @pytest.mark.parametrize("name", FILES)
    @pytest.mark.parametrize(
        ("command", "how"),
        [("info", "flipped"), ("info", "cut"), ("info", "empty"), ("decode", "flipped")],
    )
    def test_of_a_model_at_the_command_line(self, model, capsys, name, how, command):
        path = model / name
        whole = path.read_bytes()
        content = {"flipped": flipped(whole, len(whole) // 2), "cut": whole[:-5], "empty": b""}[how]
        path.write_bytes(content)
        raw = SAMPLE / "raw.words"
        arguments = {
            "info": ["info", model],
            "decode": ["decode", "--raw", raw, "--loadmodel", model, "--columns", "word"],
        }[command]
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        if command == "decode" and name == "history.jsonl":  # which decoding has no use for
            assert status == 0
            return
        assert (status, captured.out) == (2, "")
        assert captured.err.splitlines()[-1].startswith(f"ncrf: {path}: is damaged")

    @pytest.mark.parametrize("name", FILES[:3] + FILES[4:])
    def test_a_file_that_is_missing(self, model, name):
        (model / name).unlink()
        with pytest.raises(InputError, match=f"^{model / name}: is missing"):
            Tagger.load(model)

    def test_how_much_is_missing_is_said(self, model):
        path = model / "model.safetensors"
        size = path.stat().st_size
        path.write_bytes(path.read_bytes()[:-7])
        with pytest.raises(InputError, match=f"it has {size - 7:,} bytes, {size:,} were written"):
            Tagger.load(model)

    def test_the_state_of_an_unfinished_training(self, tmp_path, monkeypatch):
        interrupt_after_an_epoch(small_keys(tmp_path / "model"), monkeypatch)
        path = tmp_path / "model" / "training" / "state.safetensors"
        path.write_bytes(flipped(path.read_bytes(), 5000))
        with pytest.raises(InputError, match=f"^{path}: is damaged"):
            Tagger.train(small_keys(tmp_path / "model", resume=True))


def interrupt_after_an_epoch(keys, monkeypatch):
    step = Trainer._step

    def interrupted(trainer, *given):
        if trainer.progress.epoch:
            raise KeyboardInterrupt
        return step(trainer, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Tagger.train(keys)


def as_first_format(place):
    """A folder, finished or not, as the first format had it."""
    for part in (place, place / "training"):
        if part.is_dir():
            (part / MANIFEST).unlink()
            content = json.loads((part / "alphabets.json").read_text())
            content["format"] = 1
            (part / "alphabets.json").write_text(json.dumps(content))


class TestOtherFormats:
    def test_a_model_of_the_first(self, model, capsys):
        sentences = [["Anna", "left"]]
        before = Tagger.load(model).predict(sentences)
        as_first_format(model)
        assert Tagger.load(model).predict(sentences) == before
        assert main(["info", str(model)]) == 0
        assert checkpoint.folder_state(model) == "finished"

    def test_an_unfinished_training_of_the_first(self, tmp_path, monkeypatch):
        keys = small_keys(tmp_path / "model")
        interrupt_after_an_epoch(keys, monkeypatch)
        as_first_format(tmp_path / "model")
        Tagger.train({**keys, "resume": True})
        Tagger.train(small_keys(tmp_path / "whole"))
        weights = [(tmp_path / n / "model.safetensors").read_bytes() for n in ("model", "whole")]
        assert weights[0] == weights[1]
        assert set(manifest.manifest_of(tmp_path / "model").files) == set(FILES) - {MANIFEST}

    def test_whose_best_epoch_is_over(self, tmp_path, monkeypatch):
        """The weights that the old program wrote are the model's at the end."""
        keys = small_keys(tmp_path / "model", learning_rate=1e-20)
        interrupt_after_an_epoch(keys, monkeypatch)
        as_first_format(tmp_path / "model")
        before = (tmp_path / "model" / "model.safetensors").read_bytes()
        Tagger.train({**keys, "resume": True})
        assert read_file(tmp_path / "model", "model.safetensors") == before

    @pytest.mark.parametrize("found", [3, 0, None, "2", True])
    def test_one_that_is_not_known(self, model, found, capsys):
        content = json.loads((model / "alphabets.json").read_text())
        content["format"] = found
        whole = json.dumps(content).encode()
        update(model, {"alphabets.json": whole})
        message = rf"alphabets\.json: has format {found!r}, this program reads up to 2"
        with pytest.raises(InputError, match=message):
            Tagger.load(model)

    def test_a_manifest_of_a_newer_program(self, model):
        content = json.loads((model / MANIFEST).read_text())
        (model / MANIFEST).write_text(json.dumps({**content, "format": 3}))
        message = rf"{MANIFEST}: has format 3, this program reads up to 2 \(a newer version"
        with pytest.raises(InputError, match=message):
            Tagger.load(model)

    def test_a_damaged_manifest_does_not_hinder_overwriting(self, model):
        (model / MANIFEST).write_bytes(b"\0")
        Tagger.train(small_keys(model, iteration=1, overwrite=True))
        assert Tagger.load(model).config.training.iteration == 1


@pytest.mark.parametrize(
    "entry",
    [
        {"../b": {"size": 1, "blake2b": ""}},
        {"": {"size": 1, "blake2b": ""}},
        {"a\0": {"size": 1, "blake2b": ""}},
        {"a": {"size": "1", "blake2b": ""}},
        {"a": {"size": 1, "blake2b": 2}},
        {"a": {"size": 1}},
        {"a": 1},
        [],
        "a",
    ],
)
def test_a_manifest_made_by_hand_is_no_way_around(small, entry):
    """Its own checksum is right; what it says is not."""
    whole = {"format": 2, "files": entry, "blake2b": manifest._digest_of(entry)}
    (small / MANIFEST).write_text(json.dumps(whole))
    with pytest.raises(InputError, match=f"{MANIFEST}: is damaged"):
        read_file(small, "a")


def test_files_that_the_manifest_does_not_name_are_not_read(small):
    (small / "c").write_bytes(b"of another model")
    with pytest.raises(FileNotFoundError):
        read_file(small, "c")
    assert manifest.names_of(small) == {"a", "b"}


def test_whoever_reads_while_it_is_written_gets_one_or_the_other(tmp_path):
    """Two hundred steps, each of which changes all the files, under the eyes of two readers."""
    place = tmp_path / "model"
    place.mkdir()
    contents = [bytes([number]) * 100_000 for number in range(200)]
    update(place, {"a": contents[0], "b": contents[0]})
    done, wrong = threading.Event(), []

    def read():
        latest = 0
        while not done.is_set():
            try:
                content = read_file(place, "a")
                assert content == contents[content[0]] and content[0] >= latest
                latest = content[0]
            except BaseException as error:
                wrong.append(error)
                raise

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for content in contents:
        update(place, {"a": content, "b": content})
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert sorted(path.name for path in place.iterdir()) == ["a", "b", MANIFEST]


def test_a_model_between_two_places_is_read_and_described(model, tmp_path):
    """Cut off after the step itself: no file has its name yet."""
    between = tmp_path / "between"
    between.mkdir()
    for path in model.iterdir():
        shutil.copy(path, between / waiting(path.name))
    sentences = [["Anna", "left"]]
    assert Tagger.load(between).predict(sentences) == Tagger.load(model).predict(sentences)
    assert main(["info", str(between)]) == 0
    assert main(["decode", "--raw", str(SAMPLE / "raw.bioes"), "--loadmodel", str(between)]) == 0
    with pytest.raises(InputError, match="holds a model"):
        Tagger.load(model).save(between)


def test_tensors_with_an_odd_type_are_damage(tmp_path):
    content = folder.tensor_bytes({"a": torch.zeros(4)}).replace(b'"F32"', b'"F99"')
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError, match="x: is damaged"):
        folder.read_tensors(tmp_path / "x")
