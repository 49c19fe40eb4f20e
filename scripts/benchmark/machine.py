"""The machine that figures are measured on, without which they say little."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any


def describe_machine(repository: Path) -> dict[str, Any]:
    """Date, processor, memory, versions, and how busy the machine is."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": importlib.metadata.version("torch"),
        "numpy": importlib.metadata.version("numpy"),
        "commit": _commit(repository),
        "load": [round(value, 2) for value in os.getloadavg()],
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
    }


def _field(path: str, name: str) -> str | None:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), None)


def _commit(repository: Path) -> str | None:
    """The commit that is measured, with ``-dirty`` for changes that are in none."""
    command = ["git", "describe", "--always", "--dirty"]
    try:
        found = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()
