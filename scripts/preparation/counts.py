"""Counts of a prepared file, by ncrf's own readers, against those that were published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ncrf import load_config
from ncrf.data.inspection import Inspector


@dataclass(frozen=True)
class Counts:
    """What a corpus file holds; None is not known, or not to be compared.

    ``-DOCSTART-`` lines are counted neither as sentences nor as tokens. ``spans`` are entities,
    chunks or, in segmentation, words.
    """

    sentences: int | None = None
    tokens: int | None = None
    spans: int | None = None

    def items(self) -> list[tuple[str, int]]:
        """The counts that are known, each with its name."""
        pairs = (("sentences", self.sentences), ("tokens", self.tokens), ("spans", self.spans))
        return [(name, count) for name, count in pairs if count is not None]

    def differences(self, published: Counts) -> list[tuple[str, int, int]]:
        """``(name, ours, published)`` of every count that both know and that differs."""
        ours = dict(self.items())
        pairs = [(name, ours.get(name), count) for name, count in published.items()]
        return [(name, own, count) for name, own, count in pairs if own not in (None, count)]


def count(path: Path, reading: Mapping[str, str]) -> Counts:
    """Count ``path`` as a config with the keys ``reading`` reads it; InputError if it cannot."""
    config = load_config(reading, check_files=False)
    report = Inspector(config, keep=0).inspect(str(path))
    spans = sum(report.entities.values()) if report.entities else None
    return Counts(report.sentences, report.tokens, spans)


def described(counts: Counts) -> str:
    """In words, as in ``14,041 sentences, 203,621 tokens``."""
    return ", ".join(f"{number:,} {name}" for name, number in counts.items())
