"""``ncrf run``, ``train`` and ``decode``: what a config file says."""

from __future__ import annotations

import os


def run(arguments: list[str], status: str | None = None) -> int:
    """Train or decode as a config says."""
    from ncrf.config import load_config

    file, overrides = _config_file(arguments)
    if status is not None:
        overrides = [*overrides, "--status", status]
    config = load_config(file, overrides) if file else load_config({}, overrides)
    # torch is imported late: help and config errors answer at once. Threads that wait for each
    # other asleep instead of spinning cost little, and save a machine that others use as well.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if config.run.status == "train":
        from ncrf.train.training import train_model

        train_model(config)
        return 0
    import torch

    from ncrf.decode.files import decode_file

    torch.set_num_threads(config.run.threads or len(os.sched_getaffinity(0)))

    decode_file(config)
    return 0


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
