"""A training that is killed at random moments ends as if nothing had happened."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ncrf.train.checkpoint import folder_state
from tests.conftest import SAMPLE, small_keys

ROOT = Path(__file__).resolve().parents[2]
KILLS = 20


def command(folder, **keys):
    given = small_keys(
        folder, train_dir=str(SAMPLE / "train.bioes"), iteration=6, dropout=0.3, **keys
    )
    options = [word for key, value in given.items() for word in (f"--{key}", str(value))]
    return [sys.executable, "main.py", "train", *options]


def history(folder):
    lines = (folder / "history.jsonl").read_text(encoding="utf-8").splitlines()
    timed = ("seconds", "sentences_per_second")
    return [{k: v for k, v in json.loads(line).items() if k not in timed} for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_killed_twenty_times(tmp_path, optimizer):
    """SIGKILL between half a second and the end; every start goes on from what was written."""
    keys = {"optimizer": optimizer, "learning_rate": 0.01}
    quiet = {"cwd": ROOT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    start = time.monotonic()
    subprocess.run(command(tmp_path / "whole", **keys), check=True, **quiet)
    whole_time = time.monotonic() - start
    rng = random.Random(1)
    killed = 0
    for _ in range(KILLS // 2):
        if folder_state(tmp_path / "broken") == "finished":
            break  # killed after all was done
        with subprocess.Popen(
            command(tmp_path / "broken", resume=True, checkpoint_every=0.0005, **keys), **quiet
        ) as process:
            try:
                process.wait(timeout=rng.uniform(0.5, 0.9 * whole_time))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                killed += 1
            else:
                assert process.returncode == 0
                break
    if folder_state(tmp_path / "broken") != "finished":
        subprocess.run(command(tmp_path / "broken", resume=True, **keys), check=True, **quiet)
    assert killed >= 2
    assert history(tmp_path / "whole") == history(tmp_path / "broken")
    whole, broken = (tmp_path / n / "model.safetensors" for n in ("whole", "broken"))
    assert whole.read_bytes() == broken.read_bytes()
