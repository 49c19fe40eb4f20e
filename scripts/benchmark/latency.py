"""How long a user waits for one sentence of 20 words: single calls of Tagger.predict.

    python -m benchmark.latency MODEL FILE --json OUT [--calls 300] [--threads N]

Started by scripts/bench.py in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

WORDS = 20
_WARM_UP = 20


def main() -> None:
    parser = argparse.ArgumentParser(description="Milliseconds that single calls take.")
    parser.add_argument("model")
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    start = time.perf_counter()
    import torch

    from ncrf import Tagger

    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    imported = time.perf_counter()
    tagger = Tagger.load(arguments.model)
    loaded = time.perf_counter()
    times = []
    for sentence in islice(sentences(arguments.file), _WARM_UP + arguments.calls):
        began = time.perf_counter()
        tagger.predict([sentence])
        times.append((time.perf_counter() - began) * 1e3)
    rest = sorted(times[_WARM_UP:] or times)
    found = {
        "words": WORDS,
        "calls": len(rest),
        "median_ms": statistics.median(rest),
        "p95_ms": rest[int(0.95 * (len(rest) - 1))],
        "first_ms": times[0],
        "import_seconds": imported - start,
        "load_seconds": loaded - imported,
        "threads": torch.get_num_threads(),
    }
    arguments.json.write_text(json.dumps(found), encoding="utf-8")


def sentences(path: Path) -> Iterator[list[str]]:
    """The words of a column file, 20 at a time, whatever its sentences are."""
    words: list[str] = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                words.append(line.split(" ")[0])
            if len(words) == WORDS:
                yield words
                words = []


if __name__ == "__main__":
    main()
