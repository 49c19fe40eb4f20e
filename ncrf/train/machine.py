"""What a training computes with: how many threads, and the machine in words. Without torch."""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ncrf.config import Config

_SMALL_BATCH = 16  # sentences; where torch shares out so few, a thread costs as much as it gives


def training_threads(config: Config) -> int:
    """How many threads a training uses: as the config asks for, or as suits its batches."""
    few = config.training.batch_size <= _SMALL_BATCH
    keys = config.word_layer
    shared = not keys.use_word_seq or keys.word_seq_feature in ("LSTM", "GRU")
    return config.run.threads or (1 if few and not shared else len(os.sched_getaffinity(0)))


def machine_in_words(config: Config) -> str:
    """Processor, its cores and the threads of a training on them, and the GPU if there is one.

    A GPU is named if the config and the installed torch would use one that the system has.
    """
    threads = training_threads(config)
    cores = os.cpu_count() or 1
    words = f"{_processor()}, {_count(cores, 'core')}, {_count(threads, 'thread')}"
    gpu = _gpu() if config.run.gpu is not False and _torch_uses_gpus() else None
    return words if gpu is None else f"{gpu}; {words}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _processor() -> str:
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
        if found is not None:
            return " ".join(found[1].split())
    return platform.processor() or platform.machine()


def _gpu() -> str | None:
    """The name of the first GPU that NVIDIA's driver knows; None without one."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return None
    with suppress(OSError):
        for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
            found = re.search(r"^Model:\s*(.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            if found is not None:
                return found[1].strip()
    return None


def _torch_uses_gpus() -> bool:
    try:
        return not version("torch").endswith("+cpu")
    except PackageNotFoundError:
        return False
