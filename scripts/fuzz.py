"""Gives ncrf bad input for as long as it is told to, and says what came of it.

    python scripts/fuzz.py --seconds 600 [--seed 1] [--target NAME] [--keep FOLDER]

Right inputs (configs, corpora, vector files, files of model folders) are changed at random and
given to the commands in this process. What must be true of every one stands in
tests/fuzz/attempts.py. An input at which something else happens is kept in FOLDER and named.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from ncrf import Tagger  # noqa: E402
from tests.conftest import small_keys  # noqa: E402
from tests.fuzz.attempts import Targets  # noqa: E402
from tests.fuzz.mutations import combination, hostile, mutate, seeds  # noqa: E402

LIMIT = 30  # seconds of processor time for one input
HANGING = 600  # seconds of waiting, on a machine that others use as well
MEMORY = 12 << 30  # bytes of address space


class Late(BaseException):
    """No Exception: whatever is being tried does not catch it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", help="only these")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-faults"))
    options = parser.parse_args()
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, _late)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        Tagger.train(small_keys(place / "model", iteration=2))
        (place / "fuzz").mkdir()
        return fuzz(Targets(place / "fuzz", place / "model"), options)


def fuzz(targets: Targets, options: argparse.Namespace) -> int:
    rng = random.Random(options.seed)
    pool = seeds(targets)
    for target, _, data in hostile():
        if len(data) < 5_000:
            pool.setdefault(target, []).append(data)
    names = options.target or sorted({*pool, "combine"} - {"sizes"})
    faults: Counter[str] = Counter()
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        name = rng.choice(names)
        data = combination(rng) if name == "combine" else mutate(rng.choice(pool[name]), rng)
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        signal.alarm(HANGING)
        try:
            targets.try_one(name, data)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            _report(name, data, error, faults, options.keep)
        finally:
            signal.alarm(0)
            signal.setitimer(signal.ITIMER_PROF, 0)
    counts = targets.counts
    for name, number in sorted(counts.by_target.items()):
        print(f"{number:>9,}  {name}")
    print(
        f"{counts.inputs:,} inputs, {counts.bytes:,} bytes in {options.seconds:.0f} s (seed "
        f"{options.seed}): {counts.done:,} done, {counts.refused:,} refused in one line, "
        f"{sum(faults.values())} faults in {len(faults)} places"
    )
    return 1 if faults else 0


def _report(name: str, data: bytes, error: BaseException, faults: Counter[str], keep: Path) -> None:
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames[-4:]))
    key = f"{name}: {type(error).__name__} at {where}"
    faults[key] += 1
    if faults[key] == 1:
        keep.mkdir(exist_ok=True)
        path = keep / f"{name}-{len(faults)}"
        path.write_bytes(data)
        with contextlib.suppress(UnicodeError):
            print(f"{key}: {str(error)[:300]!r}; kept as {path}", flush=True)


def _late(number: int, frame: object) -> None:
    raise Late("too slow")


if __name__ == "__main__":
    sys.exit(main())
