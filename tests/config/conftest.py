from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from ncrf.config import Config, load_config


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs in an empty folder of its own; relative paths start there."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def read() -> Callable[..., Config]:
    """Load a config from its text, without asking for the files that it names."""

    def load(text: str, overrides: object = None, name: str = "my.config", **options) -> Config:
        Path(name).write_text(text, encoding="utf-8")
        return load_config(name, overrides, **{"check_files": False, **options})

    return load


@pytest.fixture
def warnings_of(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What has been logged as a warning so far."""
    caplog.set_level(logging.INFO)

    def messages() -> list[str]:
        return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]

    return messages
