"""One bad input after another, and what must be true of each, whatever its bytes.

Either the command does its work (status 0), or it ends with status 2 and one line that names the
file; there is no traceback, nothing half-written, and an end within bounded time and memory.
"""

import gzip
import io
import os
import resource
import shutil
import sys
import time
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ncrf import Tagger
from ncrf.cli import main
from ncrf.config import config_text
from ncrf.data.output_files import TEMPORARY
from ncrf.errors import InputError
from ncrf.model import manifest
from tests.conftest import SAMPLE, small_keys

SECONDS = 20.0  # of processor time, for one input
MEGABYTES = 400  # beyond what the process had before


@dataclass
class Counts:
    """What was tried: inputs, their bytes, and how they ended."""

    inputs: int = 0
    bytes: int = 0
    done: int = 0
    refused: int = 0
    by_target: dict[str, int] = field(default_factory=dict)


def peak():
    """The most memory that this process ever had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextmanager
def bounded(what):
    """A block that ends in time and without much memory."""
    memory, start = peak(), time.process_time()
    yield
    assert time.process_time() - start < SECONDS, f"{what}: too slow"
    assert peak() - memory < MEGABYTES, f"{what}: {peak() - memory:.0f} MB"


def run(arguments):
    """Exit status, standard output, standard error of a command, as a shell would see them."""
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, write_through=True)
        for errors in ("strict", "backslashreplace")
    )
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO())
    try:
        with redirect_stdout(out), redirect_stderr(err):
            status = main([str(argument) for argument in arguments])
    finally:
        sys.stdin = stdin
    return status, *(stream.buffer.getvalue().decode("utf-8") for stream in (out, err))


def attempt(arguments, names, output=None):
    """Run a command and check what must be true of any; returns its status.

    An error names one of ``names``; an ``output`` is there only if all was done.
    """
    with bounded(arguments):
        status, _, err = run(arguments)
    said = [line for line in err.split("\n") if line.startswith("ncrf: ")]
    assert "Traceback" not in err and "\0" not in err
    if status == 0:
        assert not said, err
        assert output is None or output.exists()
        return status
    assert status == 2, (status, err)
    assert len(said) == 1 and err.endswith(said[0] + "\n"), err[-2000:]
    assert any(str(name) in said[0] for name in names), said[0]
    assert len(said[0]) < 5000, len(said[0])
    if output is not None:
        assert not output.exists()
        assert not [path for path in output.parent.iterdir() if path.name.endswith(TEMPORARY)]
    return status


class Targets:
    """What bad input can be given to; each method takes bytes and checks one attempt or more."""

    def __init__(self, folder: Path, trained: Path) -> None:
        self.folder = folder
        self.model = trained
        self.gold = folder / "gold"
        self.gold.write_text("Anna B-PER\nmet O\n\nBo B-PER\n")
        self.counts = Counts()
        keys = {"dev_dir": None, "iteration": 1}
        (folder / "vectors").write_text("Anna 1 2\nBo 3 4\n")
        self.with_vectors = folder / "with_vectors"
        corpus = SAMPLE / "dev.cappos.bioes"
        Tagger.train(
            small_keys(
                self.with_vectors,
                train_dir=str(corpus),
                word_emb_dir=str(folder / "vectors"),
                vectors_in_model=True,
                **keys,
            )
        )

        self.with_templates = folder / "with_templates"
        self.templates = folder / "templates"
        self.templates.write_text("U00:%x[0,0]\nU01:%x[-1,0]/%x[0,2]\nB\nB00:%x[0,2]\n")
        classical = {"word_seq_feature": "none", "optimizer": "LBFGS"}
        templates = {"template_file": str(self.templates), "train_dir": str(corpus)}
        Tagger.train({**classical, **templates, "model_dir": str(self.with_templates), **keys})

    def try_one(self, name, data):
        """Give ``data`` to the target of this name."""
        counts = self.counts
        counts.inputs += 1
        counts.bytes += len(data)
        counts.by_target[name] = counts.by_target.get(name, 0) + 1
        before = os.getcwd()
        os.chdir(self.folder)  # what a bad config writes, it writes here
        try:
            status = getattr(self, name)(data)
        finally:
            os.chdir(before)
        counts.done += status == 0
        counts.refused += status != 0
        return status

    def _file(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def _out(self):
        (self.folder / "out").mkdir(exist_ok=True)
        path = self.folder / "out" / "out"
        path.unlink(missing_ok=True)
        return path

    # ---------------------------------------------------------------- configs

    def config(self, data):
        path = self._file("x.config", data)
        return attempt(["run", path], [path, "train_dir", "<stdin>"])

    def yaml(self, data):
        path = self._file("x.yaml", data)
        return attempt(["run", path], [path, "train_dir", "<stdin>"])

    def sizes(self, data):
        """Lines of a config that are added to one that trains."""
        path, model = self.folder / "sizes.config", self.folder / "trained"
        keys = small_keys(model, train_dir=str(self.gold), dev_dir=None, iteration=1)
        lines = [f"{key}={value}" for key, value in keys.items() if value is not None]
        path.write_bytes("\n".join([*lines, "overwrite=True", ""]).encode() + data)
        others = ["this network", "this machine", "freeze=", "a/a/a", ".111"]
        return attempt(["run", path], [path, self.gold, *others])

    def combine(self, data):
        """Lines of a config for a training on a few sentences, and for decoding with its model."""
        path, model = self.folder / "combined.config", self.folder / "combined"
        shutil.rmtree(model, ignore_errors=True)
        files = f"train_dir={self.gold}\nmodel_dir={model}\nhidden_dim=8\nchar_hidden_dim=4\n"
        path.write_bytes(files.encode() + data)
        with bounded(data):
            status, _, err = run(["run", path])
        said = [line for line in err.split("\n") if line.startswith("ncrf: ")]
        assert "Traceback" not in err
        if status == 1:
            assert len(said) == 1 and ("finite" in err or "diverged" in err), err[-1000:]
        elif status == 2:
            assert len(said) == 1, err[-1000:]
        else:
            assert status == 0 and not said
            out = self._out()
            arguments = ["decode", "--raw", self.gold, "--loadmodel", model, "--output", out]
            with bounded(data):
                decoded, _, err = run([*arguments, "--nbest", 3])
            # Forced labels are unknown to the model, or none are read (raw_format=lines).
            refused = decoded == 2 and f"ncrf: {self.gold}:" in err and "forced_labels=True" in err
            assert decoded == 0 or refused or "finite" in err or "diverged" in err, err[-1000:]
        return status

    # ---------------------------------------------------------------- corpora

    def check(self, data):
        path = self._file("x", data)
        return attempt(["check", path], [path])

    def convert(self, data):
        path, out = self._file("x", data), self._out()
        return attempt(["convert", "--to", "BIOES", path, out], [path], out)

    def evaluate(self, data):
        path = self._file("x", data)
        attempt(["evaluate", path, path], [path])
        return attempt(["evaluate", self.gold, path], [path, self.gold])

    def decode(self, data):
        return self._decode(data)

    def decode_lines(self, data):
        return self._decode(data, "--raw_format", "lines", "--decode_format", "json")

    def _decode(self, data, *options):
        path, out = self._file("x", data), self._out()
        arguments = ["decode", "--raw", path, "--loadmodel", self.model, "--output", out]
        return attempt([*arguments, "--threads", 1, *options], [path], out)

    def train(self, data):
        path, model = self._file("x", data), self.folder / "trained"
        keys = small_keys(model, train_dir=str(path), dev_dir=None, iteration=1, overwrite=True)
        status = attempt(["train", *(f"--{k}={v}" for k, v in keys.items() if v)], [path])
        assert not (model / "lock.json").exists()
        return status

    def template_file(self, data):
        path, model = self._file("x.template", data), self.folder / "classical"
        keys = {"train_dir": self.gold, "model_dir": model, "template_file": path}
        keys |= {"word_seq_feature": "none", "optimizer": "LBFGS", "iteration": 2}
        arguments = [f"--{key}={value}" for key, value in keys.items()]
        return attempt(["train", *arguments, "--overwrite", "True", "--threads", 1], [path])

    def packed(self, data):
        path = self._file("x.gz", data)
        return attempt(["check", path], [path])

    def packed_well(self, data):
        return self.packed(gzip.compress(data, 1))

    def conllu(self, data):
        path, out = self._file("x", data), self._out()
        attempt(["check", path, "--file_format", "conllu"], [path])
        options = [
            "--file_format",
            "conllu",
            "--label_column",
            "misc:NER",
            "--input_scheme",
            "IOB2",
        ]
        return attempt(["convert", "--to", "BIOES", path, out, *options], [path], out)

    def classification(self, data):
        path = self._file("x", data)
        attempt(["evaluate", path, path, "--sentence_classification", "True"], [path])
        return attempt(["check", path, "--sentence_classification", "True"], [path])

    def nbest(self, data):
        path = self._file("x", data)
        return attempt(["evaluate", "--oracle", self.gold, path], [path, self.gold])

    # ---------------------------------------------------------------- vectors

    def vectors(self, data):
        return self._vectors(self._file("x.vec", data))

    def packed_vectors(self, data):
        return self._vectors(self._file("x.vec.gz", gzip.compress(data, 1)))

    def _vectors(self, path):
        return attempt(["check", self.gold, "--word_emb_dir", path], [path])

    # ---------------------------------------------------------------- model folders

    def model_config(self, data):
        return self._model(self.model, "config.yaml", data)

    def model_alphabets(self, data):
        return self._model(self.model, "alphabets.json", data)

    def model_weights(self, data):
        return self._model(self.model, "model.safetensors", data)

    def model_history(self, data):
        return self._model(self.model, "history.jsonl", data)

    def model_vectors(self, data):
        return self._model(self.with_vectors, "vectors.safetensors", data)

    def model_templates(self, data):
        return self._model(self.with_templates, "templates.json", data)

    def model_template_arrays(self, data):
        return self._model(self.with_templates, "templates.safetensors", data)

    def model_manifest(self, data):
        return self._model(self.model, manifest.MANIFEST, data, seal=False)

    def _model(self, model, name, data, *, seal=True):
        """A file of a model folder is changed, with a checksum that is right or one that is not."""
        place = self.folder / "model"
        place.mkdir(exist_ok=True)
        for path in place.iterdir():
            path.unlink()
        for path in model.iterdir():
            os.link(path, place / path.name)
        if seal:
            manifest.update(place, {name: data})
        else:
            (place / name).unlink()
            (place / name).write_bytes(data)
        attempt(["info", place], [place])
        with bounded(name):
            try:
                tagger = Tagger.load(place, nbest=2)
                given = {feature: ["x", "y"] for feature in tagger.vocabulary.features}
                sentence = {"words": ["Anna", "left"], **given} if given else ["Anna", "left"]
                (prediction,) = tagger.predict([sentence])
                assert len(prediction.labels) == 2
            except InputError as error:
                assert str(error).startswith((str(place), "the weights of this network")), error
                assert "\n" not in str(error)
                return 2
        return 0


def word2vec_binary(words, width):
    """A file as word2vec writes it."""
    rows = b"".join(
        word.encode() + b" " + np.arange(width, dtype="<f4").tobytes() + b"\n" for word in words
    )
    return f"{len(words)} {width}\n".encode() + rows


__all__ = ["Counts", "Targets", "config_text", "word2vec_binary"]
