"""Training and decoding with ncrf and with NCRF++, on the same files with the same keys.

NCRF++ is run as it is, unchanged and outside its folder; what it prints, and when, is all that is
known of it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmark.processes import Failed, Finished, failure, run, run_well

ROOT = Path(__file__).resolve().parents[2]
_OURS_DECODED = re.compile(r"decoded .*?([\d,.]+) sentences/s")
_PEER_TRAINED = re.compile(r"Epoch: \d+ training finished\. Time: ([\d.]+)s")
_PEER_DEV = re.compile(r"^Dev: .* f: (-?[\d.]+)")


@dataclass(frozen=True)
class Job:
    """What both sides are given: files, and keys that mean the same to both.

    ``threads`` None: each side takes what it takes by itself.
    """

    train: Path
    dev: Path | None
    test: Path | None
    keys: Mapping[str, object]
    threads: int | None = None

    def training_keys(self, model: Path) -> dict[str, object]:
        """The keys of a training config."""
        files = {"train_dir": self.train, "dev_dir": self.dev, "test_dir": self.test}
        given = {name: path for name, path in files.items() if path is not None}
        return {"status": "train", **given, "model_dir": model, **self.keys}

    @property
    def environment(self) -> dict[str, str]:
        """Variables that set the number of threads, if it is given."""
        if self.threads is None:
            return {}
        return {"OMP_NUM_THREADS": str(self.threads), "MKL_NUM_THREADS": str(self.threads)}


@dataclass(frozen=True)
class Training:
    """One training: seconds of each epoch's steps, without loading and without scoring.

    ``process_seconds`` is the whole program, ``dev_f1`` the last epoch's, from 0 to 1.
    """

    epoch_seconds: list[float]
    process_seconds: float
    peak_mb: float
    dev_f1: float | None


@dataclass(frozen=True)
class Decoding:
    """One decoding: seconds from file to file without loading the model, and the whole program."""

    seconds: float
    process_seconds: float
    peak_mb: float
    note: str = ""


class Side(Protocol):
    """One of the two programs that are compared."""

    name: str

    def train(self, job: Job) -> Training:
        """Train a model; it stays, and ``decode`` uses it."""

    def decode(self, job: Job, raw: Path, sentences: int, nbest: int) -> Decoding:
        """Decode ``raw`` (0: the best labeling, without n-best) with the model that is there."""

    def has_model(self) -> bool:
        """Whether there is a model to decode with."""


class Ncrf:
    """ncrf, by ``main.py --config FILE``."""

    name = "ncrf"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.model = folder / "model"
        folder.mkdir(parents=True, exist_ok=True)

    def has_model(self) -> bool:
        return (self.model / "model.safetensors").exists()

    def train(self, job: Job) -> Training:
        keys = {**job.training_keys(self.model), "overwrite": True}
        finished = self._run(self.config("train", keys, job), job)
        history = (self.model / "history.jsonl").read_text(encoding="utf-8").splitlines()
        epochs = [json.loads(line) for line in history]
        scores = epochs[-1]["dev"] or {}
        return Training(
            [epoch["seconds"] for epoch in epochs],
            finished.seconds,
            finished.peak_mb,
            scores.get("f1"),
        )

    def decode(self, job: Job, raw: Path, sentences: int, nbest: int) -> Decoding:
        finished = self._run(self.decode_config(job, raw, nbest), job)
        found = _OURS_DECODED.search(finished.text)
        if found is None:
            raise Failed(f"ncrf logs no speed of decoding:\n{finished.text}")
        speed = float(found[1].replace(",", ""))
        return Decoding(sentences / speed, finished.seconds, finished.peak_mb)

    def decode_config(self, job: Job, raw: Path, nbest: int) -> Path:
        """Write the config of a decoding; its path."""
        keys: dict[str, object] = {"status": "decode", "load_model_dir": self.model}
        keys |= {"raw_dir": raw, "decode_dir": self._folder / "decoded.txt"}
        return self.config("decode", {**keys, **({"nbest": nbest} if nbest else {})}, job)

    def config(self, name: str, keys: Mapping[str, object], job: Job) -> Path:
        """Write a config with ncrf's own key for the number of threads; its path."""
        own = {} if job.threads is None else {"threads": job.threads}
        return write_config(self._folder / f"{name}.config", {**keys, **own})

    def _run(self, config: Path, job: Job) -> Finished:
        command = [sys.executable, "main.py", "--config", config]
        return run_well(command, ROOT, job.environment)


class Ncrfpp:
    """A checkout of NCRF++, by its own ``main.py --config FILE``."""

    name = "NCRF++"

    def __init__(self, checkout: Path, folder: Path) -> None:
        self._program = checkout.resolve() / "main.py"
        if not self._program.exists():
            raise Failed(f"{self._program} is not there: --peer takes a checkout of NCRF++")
        self._folder = folder
        self._prefix = folder / "model"
        folder.mkdir(parents=True, exist_ok=True)

    def has_model(self) -> bool:
        return bool(self._models())

    def train(self, job: Job) -> Training:
        for model in self._models():
            model.unlink()
        finished = self._run("train", job.training_keys(self._prefix), job)
        if finished.status or not self._models():
            raise failure([self._program], finished)
        epochs = [float(seconds) for seconds in _PEER_TRAINED.findall(finished.text)]
        scores = [found for _, line in finished.lines if (found := _PEER_DEV.search(line))]
        f1 = max(0.0, float(scores[-1][1])) if scores else None  # it says -1 where nothing is found
        return Training(epochs, finished.seconds, finished.peak_mb, f1)

    def decode(self, job: Job, raw: Path, sentences: int, nbest: int) -> Decoding:
        keys: dict[str, object] = {
            "status": "decode",
            "dset_dir": f"{self._prefix}.dset",
            "load_model_dir": self._models()[-1],
            "raw_dir": raw,
            "decode_dir": self._folder / "decoded.txt",
        }
        finished = self._run("decode", {**keys, **({"nbest": nbest} if nbest else {})}, job)
        read = _between(finished, "DATA SUMMARY END", "nbest:")
        labelled = _between(finished, "Decode raw data", "raw: time:")
        written = _between(finished, "raw: time:", "has been written")
        if read is None or labelled is None:
            raise failure([self._program], finished)
        note = "" if written else "its own writing of the output failed and is not in its time"
        seconds = read + labelled + (written or 0.0)
        return Decoding(seconds, finished.seconds, finished.peak_mb, note)

    def _models(self) -> list[Path]:
        """The models that were saved, the last epoch's last."""
        found = self._folder.glob(f"{self._prefix.name}.*.model")
        return sorted(found, key=lambda path: int(path.suffixes[-2][1:]))

    def _run(self, name: str, keys: Mapping[str, object], job: Job) -> Finished:
        config = write_config(self._folder / f"{name}.config", keys)
        # -u: each line comes when it is printed; -B: nothing is written into the checkout.
        command = [sys.executable, "-u", "-B", self._program, "--config", config]
        return run(command, self._folder, job.environment)


def write_config(path: Path, keys: Mapping[str, object]) -> Path:
    """Write ``key=value`` lines, which both programs read."""
    text = "".join(f"{key}={value}\n" for key, value in keys.items())
    path.write_text(text, encoding="utf-8")
    return path


def _between(finished: Finished, first: str, second: str) -> float | None:
    """Seconds from the line that has one text to the next line that has the other."""
    start = None
    for moment, line in finished.lines:
        if start is None:
            start = moment if first in line else None
        elif second in line:
            return moment - start
    return None
