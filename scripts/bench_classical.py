#!/usr/bin/env python3
"""Times the classical CRF on a corpus in columns, next to python-crfsuite and CRF++.

    scripts/bench_classical.py compare TRAIN TEST TEMPLATE --crfsuite DIR --crfpp DIR --threads 1 2
    scripts/bench_classical.py grow TRAIN TEMPLATE
    scripts/bench_classical.py large --attributes 1000000

``compare``: the same features, the same penalty, as many L-BFGS iterations for each; F1 on the
test corpus by conlleval's rules. ``--crfsuite``: a folder with the package pycrfsuite, ``--crfpp``
one with crf_learn and crf_test; without them they are left out. ``grow``: time and memory for parts
of a corpus, and for it several times over with other words each time. ``large``: a generated corpus
with so many attributes. TRAIN and TEST have the columns word, part of speech and label.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ncrf.data.attributes import AttributeVocabulary, TokenAttributes
from ncrf.data.columns import read_columns
from ncrf.data.dataset import InternedColumn, InternedCorpus, intern_corpus
from ncrf.data.feature_index import FeatureIndex
from ncrf.data.templates import Templates, read_templates
from ncrf.decode.corpus_labels import best_labels
from ncrf.evaluate import score_spans
from ncrf.train.learner import Iteration
from ncrf.train.template_objective import TemplateObjective, fit_weights

FRACTIONS = (0.125, 0.25, 0.5, 1, 2, 4, 8)


class Corpus:
    """A corpus in the columns that templates see."""

    def __init__(self, path: str | Path) -> None:
        found = read_columns(path, columns="word,[pos],label", features=("pos",))
        corpus: InternedCorpus = intern_corpus(found, str(path), ("pos",))
        assert corpus.labels is not None
        self.columns = {"word": corpus.words, "pos": corpus.features["pos"]}
        self.offsets, self.labels = corpus.offsets, corpus.labels

    def resized(self, share: float) -> Corpus:
        """The first part of the sentences, or all of them several times with other words."""
        new = object.__new__(Corpus)
        copies = max(1, round(share))
        end = max(1, round((len(self.offsets) - 1) * min(share, 1)))
        tokens = int(self.offsets[end])
        lengths = np.tile(np.diff(self.offsets[: end + 1]), copies)
        new.offsets = np.append(0, np.cumsum(lengths))
        words, pos = self.columns["word"], self.columns["pos"]
        size = len(words.strings)
        ids = np.concatenate([words.ids[:tokens] + size * n for n in range(copies)])
        strings = [f"{w}~{n}" if n else w for n in range(copies) for w in words.strings]
        new.columns = {
            "word": InternedColumn(ids, strings),
            "pos": InternedColumn(np.tile(pos.ids[:tokens], copies), pos.strings),
        }
        labels = InternedColumn(np.tile(self.labels.ids[:tokens], copies), self.labels.strings)
        new.labels = labels
        return new


class Ours:
    """ncrf's own training on a corpus."""

    def __init__(self, corpus: Corpus, templates: Templates) -> None:
        began = time.perf_counter()
        self.labels = corpus.labels.strings
        self.ids = corpus.labels.ids
        self.vocabulary, self.attributes = AttributeVocabulary.build(
            templates, corpus.columns, corpus.offsets
        )
        sizes = self.vocabulary.num_unigram, self.vocabulary.num_bigram
        self.index = FeatureIndex.build(
            *(self.attributes, self.ids, len(self.labels), sizes),
            transitions=templates.transitions,
            all_possible_transitions=True,
        )
        self.prepared = time.perf_counter() - began

    def train(self, iterations: int, c2: float, threads: int) -> list[Iteration]:
        """Fit, keep the weights, and give the record of each iteration."""
        return self._train(self.index, self.attributes, iterations, c2, threads)

    def _train(
        self,
        index: FeatureIndex,
        attributes: TokenAttributes,
        iterations: int,
        c2: float,
        threads: int,
    ) -> list[Iteration]:
        torch.set_num_threads(1)
        records: list[Iteration] = []
        objective = TemplateObjective(index, attributes, self.ids, c2=c2, threads=threads)
        self.weights = fit_weights(
            objective,
            tolerance=0.0,
            max_iterations=iterations,
            callback=lambda record, _: records.append(record),
        )
        return records

    def f1(self, test: Corpus) -> float:
        """F1 on a test corpus."""
        attributes = self.vocabulary.encode(test.columns, test.offsets)
        ids = best_labels(self.index, self.weights, attributes).tolist()
        return f1_of([self.labels[i] for i in ids], test)


def f1_of(labels: list[str], test: Corpus) -> float:
    """F1 in percent by conlleval's rules."""
    gold = [test.labels.strings[i] for i in test.labels.ids.tolist()]
    spans = list(pairwise(test.offsets.tolist()))
    score = score_spans([gold[a:b] for a, b in spans], [labels[a:b] for a, b in spans])
    return 100 * score.f1


def report(
    name: str, seconds: list[float], objective: float, f1: float | None, all_in: float
) -> None:
    middle = statistics.median(seconds)
    score = "" if f1 is None else f", F1 {f1:.2f}"
    print(
        f"{name}: {len(seconds)} iterations, median {middle:.3f} s, sum {sum(seconds):.1f} s, "
        f"whole training {all_in:.1f} s, objective {objective:.1f}{score}",
        flush=True,
    )


def compare(arguments: argparse.Namespace) -> None:
    templates = read_templates(arguments.template)
    train, test = Corpus(arguments.train), Corpus(arguments.test)
    print(f"{len(train.offsets) - 1} sentences, {train.offsets[-1]} words", flush=True)
    ours = Ours(train, templates)
    sizes = f"{ours.vocabulary.num_unigram} attributes, {ours.index.num_features} features"
    print(f"ncrf: {sizes}, prepared in {ours.prepared:.2f} s", flush=True)
    for _ in range(arguments.rounds):
        for threads in arguments.threads:
            began = time.perf_counter()
            records = ours.train(arguments.iterations, arguments.c2, threads)
            whole = time.perf_counter() - began + ours.prepared
            seconds = [record.seconds for record in records]
            passes = sum(record.evaluations for record in records)
            name = f"ncrf, {threads} thread(s), {passes} passes"
            report(name, seconds, records[-1].objective, ours.f1(test), whole)
        if arguments.crfsuite:
            crfsuite(arguments, ours, test)
        if arguments.crfpp:
            for threads in arguments.threads:
                crfpp(arguments, test, threads)


def crfsuite(arguments: argparse.Namespace, ours: Ours, test: Corpus) -> None:
    """python-crfsuite on the attributes that ncrf made."""
    sys.path.insert(0, arguments.crfsuite)
    import pycrfsuite

    began = time.perf_counter()
    trainer = pycrfsuite.Trainer(verbose=False)
    names = ours.vocabulary.unigram_strings()
    tokens = [[names[i] for i in row] for row in ours.attributes.unigram.tolist()]
    labels = [ours.labels[i] for i in ours.ids.tolist()]
    for start, end in pairwise(ours.attributes.offsets.tolist()):
        trainer.append(tokens[start:end], labels[start:end])
    trainer.select("lbfgs")
    trainer.set_params(
        {
            "c1": 0.0,
            "c2": arguments.c2,
            "max_iterations": arguments.iterations,
            "feature.possible_transitions": True,
            "epsilon": 0.0,
            "delta": 0.0,
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "model")
        trainer.train(model)
        whole = time.perf_counter() - began
        tagger = pycrfsuite.Tagger()
        tagger.open(model)
        seen = ours.vocabulary.encode(test.columns, test.offsets)
        rows = [[names[i] for i in row if i >= 0] for row in seen.unigram.tolist()]
        found: list[str] = []
        for start, end in pairwise(test.offsets.tolist()):
            found += tagger.tag(rows[start:end])
        tagger.close()
    log = trainer.logparser
    seconds = [record["time"] for record in log.iterations]
    name = f"python-crfsuite, {log.featgen_num_features} features"
    report(name, seconds, log.iterations[-1]["loss"], f1_of(found, test), whole)


def crfpp(arguments: argparse.Namespace, test: Corpus, threads: int) -> None:
    """crf_learn and crf_test on the files themselves; iterations timed by its output."""
    folder = Path(arguments.crfpp)
    with tempfile.TemporaryDirectory() as work:
        model = str(Path(work) / "model")
        command = [str(folder / "crf_learn"), "-c", str(1 / (2 * arguments.c2)), "-e", "1e-12"]
        command += ["-m", str(arguments.iterations), "-p", str(threads)]
        began = time.perf_counter()
        seconds, objective, last = [], 0.0, None
        with subprocess.Popen(
            [*command, arguments.template, arguments.train, model],
            stdout=subprocess.PIPE,
            text=True,
        ) as learning:
            assert learning.stdout is not None
            for line in learning.stdout:
                found = re.match(r"iter=\d+ .*obj=([\d.]+)", line)
                if found:
                    now = time.perf_counter()
                    seconds += [] if last is None else [now - last]
                    last, objective = now, float(found[1])
        whole = time.perf_counter() - began
        if not Path(model).exists() or not seconds:
            print(f"CRF++ ended with {learning.returncode}")
            return
        output = subprocess.run(
            [str(folder / "crf_test"), "-m", model, arguments.test],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    labels = [line.split("\t")[-1] for line in output.splitlines() if line.strip()]
    report(f"CRF++, {threads} thread(s)", seconds, objective, f1_of(labels, test), whole)


def grow(arguments: argparse.Namespace) -> None:
    """One process for each size, for the sake of its memory."""
    print("| corpus | sentences | attributes | features | prepared s | s/pass | peak MB |")
    print("|---|---|---|---|---|---|---|")
    for share in FRACTIONS:
        here = [sys.executable, __file__, "one", arguments.train, arguments.template, str(share)]
        here += ["--iterations", str(arguments.iterations), "--c2", str(arguments.c2)]
        found = json.loads(subprocess.run(here, capture_output=True, text=True, check=True).stdout)
        print("| " + " | ".join(str(cell) for cell in found) + " |", flush=True)


def one(arguments: argparse.Namespace) -> None:
    """One row of the table of ``grow``, as JSON."""
    corpus = Corpus(arguments.train).resized(arguments.share)
    ours = Ours(corpus, read_templates(arguments.template))
    records = ours.train(arguments.iterations, arguments.c2, 1)
    seconds = statistics.median(record.seconds / record.evaluations for record in records)
    row: list[Any] = [f"{arguments.share:g}", len(corpus.offsets) - 1, ours.vocabulary.num_unigram]
    row += [ours.index.num_features, f"{ours.prepared:.1f}", f"{seconds:.3f}", peak()]
    print(json.dumps(row))


def large(arguments: argparse.Namespace) -> None:
    """A corpus in which each of so many attributes occurs a few times, 20 at each word."""
    rng = np.random.default_rng(1)
    tokens = arguments.words
    ids = rng.integers(0, arguments.attributes, (tokens, 20)).astype(np.int32)
    covered = min(arguments.attributes, ids.size)
    ids.reshape(-1)[:covered] = rng.permutation(arguments.attributes)[:covered]
    offsets = np.append(np.arange(0, tokens, 25), tokens)
    labels = rng.integers(0, arguments.labels, tokens)
    attributes = TokenAttributes(offsets, ids, np.zeros((tokens, 0), np.int32))
    began = time.perf_counter()
    index = FeatureIndex.build(
        *(attributes, labels, arguments.labels, (arguments.attributes, 0)),
        all_possible_states=arguments.all_states,
        all_possible_transitions=True,
    )
    objective = TemplateObjective(index, attributes, labels, c2=arguments.c2)
    prepared = time.perf_counter() - began
    records: list[Iteration] = []
    fit_weights(
        objective,
        tolerance=0.0,
        max_iterations=arguments.iterations,
        callback=lambda record, _: records.append(record),
    )
    seconds = statistics.median(record.seconds / record.evaluations for record in records)
    print(
        f"{tokens} words, {arguments.attributes} attributes, {arguments.labels} labels, "
        f"{index.num_features} features: prepared in {prepared:.1f} s, {seconds:.2f} s a pass, "
        f"objective {records[0].objective:.0f} to {records[-1].objective:.0f}, "
        f"peak {peak()} MB",
        flush=True,
    )


def peak() -> int:
    """Peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Times the classical CRF.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, arguments in (
        ("compare", ("train", "test", "template")),
        ("grow", ("train", "template")),
        ("one", ("train", "template", "share")),
        ("large", ()),
    ):
        command = commands.add_parser(name)
        for argument in arguments:
            command.add_argument(argument, type=float if argument == "share" else str)
        command.add_argument("--iterations", type=int, default=100 if name == "compare" else 10)
        command.add_argument("--c2", type=float, default=1.0)
        if name == "compare":
            command.add_argument("--threads", type=int, nargs="+", default=[1, 2])
            command.add_argument("--rounds", type=int, default=1)
            command.add_argument("--crfsuite", help="folder with the package pycrfsuite")
            command.add_argument("--crfpp", help="folder with crf_learn and crf_test")
        if name == "large":
            command.add_argument("--attributes", type=int, default=1_000_000)
            command.add_argument("--labels", type=int, default=22)
            command.add_argument("--words", type=int, default=200_000)
            command.add_argument("--all-states", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    options = parse()
    {"compare": compare, "grow": grow, "one": one, "large": large}[options.command](options)
