#!/usr/bin/env python3
"""Long runs that must lose nothing: very many sentences, and threads that share a model.

    scripts/soak.py decode --sentences 1000000
    scripts/soak.py threads --seconds 60
    scripts/soak.py train --sentences 300000

Each makes what it needs in a temporary folder, with a generated corpus like that of
scripts/bench.py, and ends with a line of figures; exit status 1 if anything was lost.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmark.corpus import PARTS, scaled, write_part
from benchmark.processes import run_well
from benchmark.sides import write_config

ROOT = Path(__file__).resolve().parent.parent
_KEYS = {"word_emb_dim": 100, "gpu": False}
_ALLOWED_MB = 100


def main() -> None:
    parser = argparse.ArgumentParser(description="Long runs that must lose nothing.")
    parser.add_argument("what", choices=("decode", "threads", "train"))
    parser.add_argument("--sentences", type=int)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--work", type=Path, help="keep files here")
    arguments = parser.parse_args()
    run = {"decode": soak_decode, "threads": soak_threads, "train": soak_train}[arguments.what]
    if arguments.work is not None:
        arguments.work.mkdir(parents=True, exist_ok=True)
        sys.exit(run(arguments.work, arguments))
    with TemporaryDirectory(prefix="ncrf-soak-") as folder:
        sys.exit(run(Path(folder), arguments))


def corpus(folder: Path, name: str, sentences: int) -> Path:
    """A labelled file of so many generated sentences."""
    part = PARTS[0]
    path = folder / f"{name}.bio"
    write_part(replace(scaled(part, sentences / part.sentences), name=name), path)
    return path


def trained(folder: Path, sentences: int = 3000, **keys: object) -> tuple[Path, float]:
    """A model trained for one epoch, and the peak memory of that in MB."""
    model = folder / "model"
    given = {
        "train_dir": corpus(folder, "train", sentences),
        "model_dir": model,
        "iteration": 1,
        "batch_size": 10,
        "overwrite": True,
        **_KEYS,
        **keys,
    }
    config = write_config(folder / "train.config", given)
    finished = run_well([sys.executable, "main.py", "--config", config], ROOT)
    return model, finished.peak_mb


def soak_decode(folder: Path, arguments: Any) -> int:
    """Decode a small file and one of very many sentences; compare memory, order and counts."""
    model, _ = trained(folder)
    peaks = {}
    lost = 0
    for name, sentences in (("few", 20_000), ("many", arguments.sentences or 1_000_000)):
        raw, out = corpus(folder, name, sentences), folder / f"{name}.out"
        keys = {"status": "decode", "raw_dir": raw, "decode_dir": out, "load_model_dir": model}
        config = write_config(folder / "decode.config", keys)
        finished = run_well([sys.executable, "main.py", "--config", config], ROOT)
        peaks[name] = finished.peak_mb
        lost, read = compare(raw, out)
        print(
            f"{name}: {read:,} sentences, {finished.seconds:.0f} s, {finished.peak_mb:.0f} MB, "
            f"{lost} lines differ"
        )
        if lost:
            return 1
    grown = peaks["many"] - peaks["few"]
    print(f"memory grew by {grown:.0f} MB (allowed: {_ALLOWED_MB})")
    return int(grown > _ALLOWED_MB)


def compare(raw: Path, out: Path) -> tuple[int, int]:
    """Lines whose words are not the same in the same order, and the number of sentences."""
    wrong = sentences = 0
    with open(raw, encoding="utf-8") as given, open(out, encoding="utf-8") as written:
        for left, right in zip_longest(given, written):
            if left is None or right is None:
                wrong += 1
                continue
            word = left.split(" ", 1)[0].rstrip("\n")
            wrong += word != right.split(" ", 1)[0].rstrip("\n")
            sentences += word == ""
    return wrong, sentences


def soak_threads(folder: Path, arguments: Any) -> int:
    """Eight threads ask one Tagger for a while; every answer is that of one thread alone."""
    model, _ = trained(folder)
    sys.path.insert(0, str(ROOT))
    from ncrf import Tagger

    raw = corpus(folder, "raw", 2000)
    blocks = raw.read_text(encoding="utf-8").strip().split("\n\n")
    sentences = [[line.split(" ")[0] for line in block.split("\n")] for block in blocks]
    expected = Tagger.load(model).predict(sentences, nbest=3)
    shared = Tagger.load(model)
    end = time.monotonic() + arguments.seconds
    asked, wrong = [0] * 8, [0] * 8

    def ask(number: int) -> None:
        rng = random.Random(number)
        while time.monotonic() < end:
            chosen = rng.sample(range(len(sentences)), rng.randint(1, 40))
            found = shared.predict([sentences[i] for i in chosen], nbest=3)
            asked[number] += len(chosen)
            for i, prediction in zip(chosen, found, strict=True):
                one = expected[i]
                same = prediction.labels == one.labels and prediction.tokens == one.tokens
                near = abs(prediction.probability - one.probability) < 1e-5
                wrong[number] += not (same and near)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"8 threads, {arguments.seconds:.0f} s: {sum(asked):,} sentences, {sum(wrong)} differ")
    return int(sum(wrong) > 0 or min(asked) == 0)


def soak_train(folder: Path, arguments: Any) -> int:
    """Train one epoch on very many sentences; the memory of it, and a token's share."""
    _, small = trained(folder, 3000)
    sentences = arguments.sentences or 300_000
    start = time.perf_counter()
    _, peak = trained(folder, sentences, batch_size=128, learning_rate=0.001)
    part = PARTS[0]
    tokens = (sentences - 3000) * part.tokens / part.sentences
    each = 1e6 * (peak - small) / tokens
    print(
        f"{sentences:,} sentences: {time.perf_counter() - start:.0f} s, {peak:.0f} MB, "
        f"{each:.0f} bytes for each token more"
    )
    return 0


if __name__ == "__main__":
    main()
