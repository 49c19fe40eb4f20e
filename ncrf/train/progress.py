"""Where a training stands, its table in the log, and signs that it goes wrong."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ncrf.evaluate import Score

logger = logging.getLogger(__name__)

_COLUMNS = ("epoch", "loss", "rate", "P", "R", "F1", "acc", "sent/s", "s", "")
_WIDTHS = (5, 10, 9, 7, 7, 7, 7, 7, 7, 0)
_EMPTY_EPOCHS = 3  # without a predicted entity, before it is said
_ABOVE_GUESSING = 1.5  # times the loss of guessing, or ...
_RISE = 3.0  # ... times the lowest loss so far: more is an explosion
_BLOCK = 100  # steps of which the median norm of the gradient is usual
_FAR = 20.0  # times the usual norm


@dataclass
class Progress:
    """What a resumed training must know to go on the same way.

    ``epoch`` counts the complete ones. Of the one that has begun, ``step`` steps are done, with
    ``loss`` as their sum in ``seconds``. ``said`` holds the hints that were given.
    """

    epoch: int = 0
    step: int = 0
    loss: float = 0.0
    seconds: float = 0.0
    best_score: float = -1.0
    best_epoch: int = 0
    halvings: int = 0
    epochs_without_rise: int = 0
    epochs_without_entity: int = 0
    said: list[str] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)

    def say_once(self, key: str, message: str) -> None:
        """Warn, unless this hint was given before."""
        if key not in self.said:
            self.said.append(key)
            logger.warning("%s", message)


def watch_loss(progress: Progress, loss: float, guessing: float) -> None:
    """Say what to try when the mean loss of an epoch is that of a training that explodes.

    ``guessing`` is the mean loss of a model that finds all labels equally likely.
    """
    lowest = min((entry["loss"] for entry in progress.history), default=guessing)
    worse = loss > _ABOVE_GUESSING * guessing
    if worse or loss > _RISE * max(lowest, 0.01 * guessing):
        reason = (
            f"mere guessing would have {guessing:.4g}"
            if worse
            else f"more than {_RISE:g} times the lowest so far, {lowest:.4g}"
        )
        progress.say_once(
            "exploding",
            f"the loss explodes: {loss:.4g} a sentence in epoch {progress.epoch + 1}, {reason}. "
            "Steps are too large: try a lower learning_rate, clip=5, ave_batch_loss=True with a "
            "rate near 0.1, or optimizer=Adam with 0.001",
        )


class GradientWatch:
    """Tells a gradient that is far longer than usual: the step it makes can spoil a training.

    What is usual is the median norm of a hundred steps, the largest such so far: towards the end,
    when most gradients are short, those of the first epochs still do no harm.
    """

    def __init__(self) -> None:
        self._recent: list[float] = []
        self.usual = 0.0

    def far_above(self, norm: float) -> bool:
        """Whether a norm is far above what is usual; nothing is, in the first hundred steps."""
        self._recent.append(norm)
        far = 0 < _FAR * self.usual < norm
        if len(self._recent) == _BLOCK:
            self.usual = max(self.usual, statistics.median(self._recent))
            self._recent.clear()
        return far

    def bound(self) -> float:
        """A ``clip`` that leaves usual gradients alone: four times their norm, one digit of it."""
        return float(f"{4 * self.usual:.0e}")


def watch_entities(progress: Progress, score: Score) -> None:
    """Say it when the model has predicted no entity on the dev set for three epochs."""
    empty = score.kind == "spans" and score.gold > 0 and score.predicted == 0
    progress.epochs_without_entity = progress.epochs_without_entity + 1 if empty else 0
    if progress.epochs_without_entity == _EMPTY_EPOCHS:
        progress.say_once(
            "no entity",
            f"no entity was predicted on the dev set for {_EMPTY_EPOCHS} epochs: is the right "
            "column the label (columns=), and the learning_rate neither too high nor too low?",
        )


def header() -> str:
    """The first row of the table."""
    return table_row(_COLUMNS, _WIDTHS)


def history_row(entry: dict[str, Any]) -> str:
    """An epoch as one row of the table; scores in percent."""
    dev = entry["dev"]
    names = ("precision", "recall", "f1", "accuracy")
    return table_row(
        [
            entry["epoch"],
            f"{entry['loss']:.4f}",
            f"{entry['learning_rate']:.2e}",
            *(f"{100 * dev[name]:.2f}" if dev else "-" for name in names),
            f"{entry['sentences_per_second']:.0f}",
            f"{entry['seconds']:.1f}",
            "best" if dev and entry["best"] else "",
        ],
        _WIDTHS,
    )


def table_row(cells: Sequence[object], widths: Sequence[int]) -> str:
    """Cells to the right in columns of these widths."""
    return " ".join(
        f"{cell!s:>{width}}" for cell, width in zip(cells, widths, strict=True)
    ).rstrip()
