"""``ncrf run``, ``train`` and ``decode``: what a config file says."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ncrf.config import Config


def run(arguments: list[str], status: str | None = None) -> int:
    """Train or decode as a config says."""
    from ncrf.config import load_config

    file, overrides = _config_file(arguments)
    if status is not None:
        overrides = [*overrides, "--status", status]
    config = load_config(file, overrides) if file else load_config({}, overrides)
    # torch is imported late: help and config errors answer at once.
    wait_asleep()
    _refuse_folder(config)
    if config.run.status == "train":
        with imports():
            from ncrf.train.training import train_model
        train_model(config)
        return 0
    with imports():
        import torch

        from ncrf.decode.files import decode_file
    torch.set_num_threads(config.run.threads or len(os.sched_getaffinity(0)))
    decode_file(config)
    return 0


def wait_asleep() -> None:
    """Let torch, not yet imported, have threads that wait for each other asleep, not spinning.

    That costs little, and saves a machine that others use as well.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _refuse_folder(config: Config) -> None:
    """Refuse what the model folder rules out, which is asked again later, before torch comes in."""
    files = config.files
    if config.run.status == "decode":
        from ncrf.config import merge_decode_config, read_model_config
        from ncrf.errors import InputError

        try:
            model = read_model_config(files.load_model_dir or "")
        except InputError:
            return  # whoever loads the model says more of it
        merge_decode_config(model, config)
    else:
        from ncrf.train.checkpoint import check_folder

        folder = Path(files.model_dir or "")
        check_folder(folder, resume=files.resume, overwrite=files.overwrite)


@contextmanager
def imports() -> Iterator[None]:
    """Import without looking for garbage: what a module makes stays, and torch makes very much.

    It is not looked through at the end of the program either. That saves 0.1 and 0.3 s.
    """
    enabled = gc.isenabled()
    gc.disable()
    atexit.register(gc.freeze)
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _config_file(arguments: list[str]) -> tuple[str | None, list[str]]:
    """Take the config file, ``--config FILE`` or a first word without dashes, from arguments."""
    rest = list(arguments)
    if rest and not rest[0].startswith("-"):
        return rest.pop(0), rest
    for i, argument in enumerate(rest):
        if argument == "--config" and i + 1 < len(rest):
            return rest[i + 1], rest[:i] + rest[i + 2 :]
        if argument.startswith("--config="):
            return argument.removeprefix("--config="), rest[:i] + rest[i + 1 :]
    return None, rest


def train(arguments: list[str]) -> int:
    """Train a model."""
    return run(arguments, "train")


def decode(arguments: list[str]) -> int:
    """Label a file with a model."""
    return run(arguments, "decode")
