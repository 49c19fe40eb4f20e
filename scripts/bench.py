#!/usr/bin/env python3
"""Measures training and decoding on a generated corpus, end to end as a user runs them.

    scripts/bench.py                                   ncrf alone, as tables
    scripts/bench.py --peer DIR --batch-size 10 64     ncrf and a checkout of NCRF++ in turn
    scripts/bench.py --only scaling                    corpora of 1, 4 and 16 times the size

What each figure means is said in docs/benchmarks.md. The corpus has CoNLL-2003's sizes and lengths,
and is the same on every machine; no network is used.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from benchmark import report
from benchmark.corpus import PARTS, scaled, write_corpus, write_part, write_vectors
from benchmark.machine import describe_machine
from benchmark.processes import Failed, run_well
from benchmark.sides import ROOT, Job, Ncrf, Ncrfpp, Side
from benchmark.summary import (
    decoding_summary,
    median_profile,
    memory_per_token,
    training_summary,
    with_ratios,
)

TRAIN, _, TEST = PARTS
MEASURES = ("corpus", "train", "decode", "profile", "latency", "scaling")
# NCRF++'s own defaults and 100-d vectors: the network that its published results are of.
KEYS: dict[str, object] = {
    "word_emb_dim": 100, "char_emb_dim": 30, "char_hidden_dim": 50, "hidden_dim": 200,
    "use_crf": True, "use_char": True, "word_seq_feature": "LSTM", "char_seq_feature": "CNN",
    "lstm_layer": 1, "bilstm": True, "dropout": 0.5, "optimizer": "SGD", "lr_decay": 0.05,
    "momentum": 0, "l2": 1e-8, "ave_batch_loss": False, "number_normalized": True, "seg": True,
}  # fmt: skip
_RATE, _RATE_BATCH = 0.015, 10  # beyond this batch the rate falls: losses are summed over a batch
_PEER_SENTENCES = 3_000
Run = TypeVar("Run")


def main() -> int:
    arguments = parse()
    try:
        with _folder(arguments.work) as work:
            results = Bench(arguments, work).measure()
    except Failed as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print("\n\n".join(report.sections(results)))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Measures training and decoding on a generated corpus."
    )
    add = parser.add_argument
    add("--batch-size", type=int, nargs="+", default=[10], metavar="B", help="one or several")
    add("--epochs", type=int, default=1)
    add("--threads", type=int, help="for all sides (default: what each takes by itself)")
    add("--nbest", type=int, default=10, help="measured beside the best labeling; 0: not")
    add("--repeats", type=int, help="runs of each, for medians (default 1, with --peer 3)")
    add("--train-sentences", type=int, help="size of the training set, dev and test in proportion "
        f"(default {TRAIN.sentences}, with --peer {_PEER_SENTENCES})")  # fmt: skip
    add("--decode-sentences", type=int, default=TEST.sentences)
    add("--vectors", type=int, default=40_000, help="rows of the vector file; 0: no vectors")
    add("--only", nargs="+", choices=MEASURES, help="default: train decode profile latency")
    add("--scaling", action="store_true", help="larger corpora too; takes minutes")
    add("--scales", type=int, nargs="+", default=[1, 4, 16])
    add("--calls", type=int, default=300, help="calls for the latency")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="a key for training")
    add("--peer", type=Path, metavar="PATH", help="a checkout of NCRF++")
    add("--work", type=Path, metavar="DIR", help="keep files here; a model there is used again")
    add("--json", type=Path, metavar="FILE", help="write all figures")
    arguments = parser.parse_args()
    peer = arguments.peer is not None
    arguments.repeats = arguments.repeats or (3 if peer else 1)
    arguments.measures = set(arguments.only or MEASURES[1:-1])
    arguments.measures |= {"scaling"} if arguments.scaling else set()
    arguments.scaling_sentences = arguments.train_sentences or TRAIN.sentences
    if arguments.train_sentences is None:
        arguments.train_sentences = _PEER_SENTENCES if peer else TRAIN.sentences
    return arguments


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="ncrf-bench-") as made:
        yield Path(made)


class Bench:
    """The measurements of one call."""

    def __init__(self, arguments: argparse.Namespace, work: Path) -> None:
        self._given = arguments
        self._work = work
        self._ncrf = Ncrf(work / "ncrf")
        self._sides: list[Side] = [self._ncrf]
        if arguments.peer is not None:
            self._sides.append(Ncrfpp(arguments.peer, work / "ncrfpp"))
        self._corpus = work / "corpus"
        self._raw = self._corpus / "raw.bio"
        self._vectors = self._corpus / "vectors.txt"

    def measure(self) -> dict[str, Any]:
        """All that was asked for, for the report and for JSON."""
        given = self._given
        settings = {name: value for name, value in vars(given).items() if name != "measures"}
        results: dict[str, Any] = {
            "machine": describe_machine(ROOT),
            "settings": json.loads(json.dumps(settings, default=str)),
            "corpus": self._write_corpus(),
        }
        if "train" in given.measures:
            results["training"] = [self._training(size) for size in given.batch_size]
        if "decode" in given.measures:
            self._provide_models(self._sides)
            wanted = [0, *([given.nbest] if given.nbest else [])]
            results["decoding"] = [self._decoding(nbest) for nbest in wanted]
        if "profile" in given.measures:
            results["profile"] = self._profile()
        if "latency" in given.measures:
            self._provide_models([self._ncrf])
            results["latency"] = self._latency()
        if "scaling" in given.measures:
            results["scaling"] = self._scaling()
        results["machine"]["load_at_end"] = describe_machine(ROOT)["load"]
        return results

    # ---------------------------------------------------------------- corpora and keys

    def _write_corpus(self) -> dict[str, Any]:
        given = self._given
        _say("writing the corpus")
        counts = write_corpus(self._corpus, given.train_sentences / TRAIN.sentences)
        counts["raw"] = write_part(scaled(TEST, given.decode_sentences / TEST.sentences), self._raw)
        files = [self._corpus / f"{name}.bio" for name in counts]
        rows = write_vectors(self._vectors, files, given.vectors) if given.vectors else 0
        return {**{name: vars(found) for name, found in counts.items()}, "vectors": rows}

    def _job(self, batch_size: int, *, scored: bool = True, threads: int | None = None) -> Job:
        rate = _RATE * min(1.0, _RATE_BATCH / batch_size)
        keys = {**KEYS, "batch_size": batch_size, "learning_rate": rate}
        keys["iteration"] = self._given.epochs
        if self._given.vectors:
            keys["word_emb_dir"] = self._vectors
        keys |= dict(pair.split("=", 1) for pair in self._given.set)
        dev, test = self._corpus / "dev.bio", self._corpus / "test.bio"
        return Job(
            self._corpus / "train.bio",
            dev if scored else None,
            test if scored else None,
            keys,
            threads or self._given.threads,
        )

    def _provide_models(self, sides: Sequence[Side]) -> None:
        """A model for each side, if neither this call nor an earlier one has trained it."""
        for side in sides:
            if not side.has_model():
                _say(f"{side.name}: training the model to decode with")
                side.train(self._job(self._given.batch_size[0]))
            elif "train" not in self._given.measures:
                _say(f"{side.name}: the model that is in --work decodes")

    # ---------------------------------------------------------------- measurements

    def _training(self, size: int) -> dict[str, Any]:
        job, train = self._job(size), scaled(TRAIN, self._given.train_sentences / TRAIN.sentences)
        runs = self._in_turn(f"training, batch {size}", lambda side: side.train(job))
        sides = {
            name: training_summary(found, train.sentences, train.tokens)
            for name, found in runs.items()
        }
        counts = {"sentences": train.sentences, "tokens": train.tokens}
        return {"batch_size": size, **counts, **with_ratios(sides)}

    def _decoding(self, nbest: int) -> dict[str, Any]:
        job = self._job(self._given.batch_size[0])
        raw = scaled(TEST, self._given.decode_sentences / TEST.sentences)
        runs = self._in_turn(
            f"decoding, {nbest or 1} best",
            lambda side: side.decode(job, self._raw, raw.sentences, nbest),
        )
        sides = {
            name: decoding_summary(found, raw.sentences, raw.tokens) for name, found in runs.items()
        }
        counts = {"sentences": raw.sentences, "tokens": raw.tokens}
        return {"nbest": nbest, **counts, **with_ratios(sides)}

    def _in_turn(self, what: str, action: Callable[[Side], Run]) -> dict[str, list[Run]]:
        """The sides one after another, and all again, so that what slows the machine slows both."""
        found: dict[str, list[Run]] = {side.name: [] for side in self._sides}
        for turn in range(self._given.repeats):
            for side in self._sides:
                _say(f"{what}: {side.name}, run {turn + 1} of {self._given.repeats}")
                found[side.name].append(action(side))
        return found

    def _profile(self) -> dict[str, Any]:
        """Stages of ncrf with one thread, the model of the profile's own training."""
        side = Ncrf(self._work / "profile")
        size = self._given.batch_size[0]
        job = self._job(size, scored=False, threads=1)
        keys = {**job.training_keys(side.model), "overwrite": True}
        configs = {"train": side.config("train", keys, job)}
        configs["decode"] = side.decode_config(job, self._raw, 0)
        found: dict[str, list[dict[str, Any]]] = {"train": [], "decode": []}
        for turn in range(self._given.repeats):
            for status, config in configs.items():
                _say(f"profile of {status}, run {turn + 1} of {self._given.repeats}")
                found[status].append(self._own("stages", [status, config], job))
        return {"batch_size": size} | {name: median_profile(runs) for name, runs in found.items()}

    def _latency(self) -> Any:
        _say("latency of single sentences")
        threads = self._given.threads
        words: list[object] = [self._ncrf.model, self._raw, "--calls", self._given.calls]
        words += ["--threads", threads] if threads else []
        return self._own("latency", words, self._job(1))

    def _own(self, program: str, words: list[Any], job: Job) -> Any:
        """What a program of this package writes as JSON, run in a process of its own."""
        path = self._work / "found.json"
        command = [sys.executable, "-m", f"benchmark.{program}", *words, "--json", path]
        run_well(command, ROOT / "scripts", {**job.environment, "PYTHONPATH": str(ROOT)})
        return json.loads(path.read_text(encoding="utf-8"))

    def _scaling(self) -> dict[str, Any]:
        """Training and decoding of larger corpora; all decoded with the smallest one's model."""
        size, rows = self._given.batch_size[0], []
        first: Ncrf | None = None
        for scale in self._given.scales:
            part = scaled(TRAIN, scale * self._given.scaling_sentences / TRAIN.sentences)
            path = self._corpus / f"train-{scale}.bio"
            _say(f"scaling: {scale} times, {part.sentences} sentences")
            counts = write_part(part, path)
            job = self._job(size)
            job = Job(path, None, None, job.keys, job.threads)
            side = Ncrf(self._work / f"scale-{scale}")
            trained = side.train(job)
            first = first or side
            decoded = first.decode(job, path, part.sentences, 0)
            rows.append({"scale": scale, **vars(counts)} | {
                "training": training_summary([trained], part.sentences, part.tokens),
                "decoding": decoding_summary([decoded], part.sentences, part.tokens),
            })  # fmt: skip
        return {"batch_size": size, "sizes": rows, "memory_per_token": memory_per_token(rows)}


def _say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
