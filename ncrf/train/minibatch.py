"""Training by minibatches: one epoch after another, the best by the dev set is kept."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from ncrf.config import Config
from ncrf.crf import RowError
from ncrf.data.batch import Batch, UnknownReplacement, make_batch, pieces, training_batches
from ncrf.data.dataset import Dataset, IntArray
from ncrf.data.partial import possible_labels
from ncrf.data.vocabulary import Vocabulary
from ncrf.errors import InputError, NcrfError
from ncrf.evaluate import Score, history_scores
from ncrf.model import folder
from ncrf.model.labeler import Labeler
from ncrf.train import checkpoint
from ncrf.train.optimizers import LearningRate, build_optimizer

logger = logging.getLogger(__name__)

_COLUMNS = ("epoch", "loss", "rate", "P", "R", "F1", "acc", "sent/s", "s", "")
_WIDTHS = (5, 10, 9, 7, 7, 7, 7, 7, 7, 0)


@dataclass
class Progress:
    """Where a training stands: what a resumed one must know to go on the same way."""

    epoch: int = 0
    best_score: float = -1.0
    best_epoch: int = 0
    halvings: int = 0
    epochs_without_rise: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)


class Trainer:
    """Trains a labeler on a corpus and keeps its model folder.

    ``evaluate`` scores the dev corpus with the model as it is, or is None without one; then
    the last epoch is kept. The best epoch is the one with the highest F1 of spans, or the
    highest accuracy where the score is one of labels.
    """

    def __init__(
        self,
        labeler: Labeler,
        train: Dataset,
        config: Config,
        model_dir: Path,
        vocabulary: Vocabulary,
        evaluate: Callable[[], Score] | None,
        *,
        partial_labels: bool = False,
    ) -> None:
        self.labeler = labeler
        self.train_set = train
        self.config = config
        self.model_dir = model_dir
        self._replacement = _unknown_replacement(config, vocabulary)
        self._evaluate = evaluate
        self._possible = (
            possible_labels(train.label_strings, vocabulary.labels) if partial_labels else None
        )
        self._rows = self._usable_rows()
        self._rng = np.random.default_rng(config.run.seed)
        trainable = [parameter for parameter in labeler.parameters() if parameter.requires_grad]
        self._trainable = trainable
        self._optimizer = build_optimizer(trainable, config.training)
        self._rate = LearningRate(config.training)
        self.progress = Progress()

    def run(self) -> None:
        """Train all epochs; ends with the best weights in the labeler and the folder."""
        keys = self.config.training
        logger.info(_table_row(_COLUMNS))
        while self.progress.epoch < keys.iteration and not self._out_of_patience():
            self._epoch()
        checkpoint.publish(
            self.model_dir, self.labeler.state_dict() if self._evaluate is None else None
        )
        checkpoint.write_history(self.model_dir, self.progress.history)
        self.labeler.load_state_dict(
            folder.read_tensors(self.model_dir / folder.WEIGHTS), strict=True
        )

    def _usable_rows(self) -> IntArray:
        """Sentence numbers to train on: MAX_SENTENCE_LENGTH leaves longer ones out, loudly."""
        lengths = self.train_set.lengths
        longest = self.config.corpus.max_sentence_length
        usable = lengths > 0
        if longest is not None:
            usable &= lengths <= longest
            skipped = int((lengths > longest).sum())
            if skipped:
                logger.warning(
                    "training skips %d of %d sentences: longer than MAX_SENTENCE_LENGTH=%d",
                    skipped,
                    len(lengths),
                    longest,
                )
        rows = np.flatnonzero(usable)
        if not len(rows):
            raise InputError(
                "no sentence to train on",
                file=self.train_set.file,
                remedy="a larger MAX_SENTENCE_LENGTH" if longest is not None else None,
            )
        return rows

    def _epoch(self) -> None:
        progress = self.progress
        start = time.perf_counter()
        loss, rate = self._pass_over_corpus()
        seconds = time.perf_counter() - start
        progress.epoch += 1
        score = self._evaluate() if self._evaluate is not None else None
        rose = True
        if score is not None:
            selected = score.f1 if score.kind == "spans" else score.accuracy
            rose = selected > progress.best_score
            if rose:
                progress.best_score = selected
            self._rate.epoch_done(rose)
        if rose:
            progress.best_epoch = progress.epoch
        entry = {
            "epoch": progress.epoch,
            "loss": loss,
            "learning_rate": rate,
            "dev": None if score is None else history_scores(score),
            "best": rose,
            "seconds": round(seconds, 3),
            "sentences_per_second": round(len(self._rows) / seconds, 1),
        }
        progress.history.append(entry)
        if rose and self._evaluate is not None:
            checkpoint.publish(self.model_dir, self.labeler.state_dict())
        self._write_state()
        if self._evaluate is not None:
            checkpoint.write_history(self.model_dir, progress.history)
        logger.info(_history_row(entry))

    def _pass_over_corpus(self) -> tuple[float, float]:
        """One epoch of steps; the mean loss of a sentence and the last learning rate."""
        keys = self.config.training
        lengths = self.train_set.lengths[self._rows]
        batches = training_batches(lengths, keys.batch_size, keys.bucket, self._rng)
        self.labeler.train()
        total = 0.0
        rate = 0.0
        epoch = self.progress.epoch
        with tqdm(
            total=len(self._rows), desc=f"epoch {epoch + 1}", unit="sent", leave=False, disable=None
        ) as bar:
            for number, batch_rows in enumerate(batches):
                rate = self._rate.at(epoch, (number + 1) / len(batches))
                for group in self._optimizer.param_groups:
                    group["lr"] = rate
                loss = self._step(self._rows[batch_rows], number + 1)
                total += loss
                bar.update(len(batch_rows))
        if not all(bool(torch.isfinite(weights).all()) for weights in self._trainable):
            raise NcrfError(
                f"the weights are not finite after epoch {epoch + 1}; {self._what_is_kept()}"
            )
        return total / len(self._rows), rate

    def _step(self, rows: IntArray, number: int) -> float:
        """One optimizer step on the sentences ``rows``; their summed loss."""
        keys = self.config.training
        self._optimizer.zero_grad(set_to_none=True)
        scale = 1.0 / len(rows) if keys.ave_batch_loss else 1.0
        total = 0.0
        for piece in self._pieces(rows):
            batch = make_batch(
                self.train_set,
                piece,
                max_word_length=self.config.corpus.max_word_length,
                possible=self._possible,
                replacement=self._replacement,
                rng=self._rng,
            ).to(self.labeler.device)
            try:
                loss = self.labeler.loss(batch)
            except RowError as error:
                raise self._row_failed(error, batch, rows, number) from error
            (loss * scale).backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        if not np.isfinite(total):
            raise NcrfError(self._not_finite(rows, number, total))
        if keys.clip is not None:
            nn.utils.clip_grad_norm_(self._trainable, keys.clip)
        self._optimizer.step()
        return total

    def _row_failed(self, error: RowError, batch: Batch, rows: IntArray, number: int) -> NcrfError:
        """Why the CRF has no answer for a row: numbers that are not finite, or its labels."""
        with torch.no_grad():
            finite = torch.isfinite(self.labeler(batch)).all()
        if not finite:
            return NcrfError(self._not_finite(rows, number, float("nan")))
        line = int(self.train_set.lines[batch.index[error.row]])
        return InputError(str(error), file=self.train_set.file, line=line)

    def _pieces(self, rows: IntArray) -> list[IntArray]:
        lengths = self.train_set.lengths
        longest = int(lengths[rows].max())
        if longest * len(rows) <= self.config.training.max_batch_tokens:
            return [rows]
        return list(pieces(rows, lengths, self.config.training.max_batch_tokens))

    def _not_finite(self, rows: IntArray, number: int, loss: float) -> str:
        lines = ", ".join(str(line) for line in sorted(self.train_set.lines[rows].tolist()))
        return (
            f"{self.train_set.file}: the loss is {loss} in epoch {self.progress.epoch + 1}, "
            f"batch {number} (sentences at lines {lines}); {self._what_is_kept()}"
        )

    def _what_is_kept(self) -> str:
        kept = "the best model so far is kept" if self.progress.best_epoch else "no model is kept"
        if self._evaluate is None:
            kept = "no model is kept"
        return f"{kept} (a lower learning_rate or clip=5 may help)"

    def _out_of_patience(self) -> bool:
        patience = self.config.training.patience
        if patience is None or self._evaluate is None:
            return False
        waited = self.progress.epoch - self.progress.best_epoch
        if waited >= patience:
            logger.info("stopped: no better dev score for %d epochs (patience)", waited)
            return True
        return False

    def _write_state(self) -> None:
        """Write all that resume needs, as one file."""
        self.progress.halvings = self._rate.halvings
        self.progress.epochs_without_rise = self._rate.epochs_without_rise
        tensors = {f"model.{name}": value for name, value in self.labeler.state_dict().items()}
        tensors |= checkpoint.flatten_optimizer(self._optimizer)
        tensors["random.torch"] = torch.get_rng_state()
        if torch.cuda.is_available():
            tensors["random.cuda"] = torch.cuda.get_rng_state()
        metadata = {
            "progress": json.dumps(vars(self.progress)),
            "random.numpy": json.dumps(self._rng.bit_generator.state),
        }
        folder.write_tensors(self.model_dir / checkpoint.STATE, tensors, metadata)

    def restore(self) -> None:
        """Go back to the last complete epoch of an unfinished training."""
        path = self.model_dir / checkpoint.STATE
        tensors, metadata = folder.read_tensors(path), folder.read_metadata(path)
        if not {"progress", "random.numpy"} <= set(metadata) or "random.torch" not in tensors:
            raise InputError("is not the state of a training", file=path, remedy="overwrite=True")
        self.progress = Progress(**json.loads(metadata["progress"]))
        self._rate.halvings = self.progress.halvings
        self._rate.epochs_without_rise = self.progress.epochs_without_rise
        weights = {
            name.removeprefix("model."): value
            for name, value in tensors.items()
            if name.startswith("model.")
        }
        self.labeler.load_state_dict(weights)
        checkpoint.restore_optimizer(self._optimizer, tensors)
        self._rng.bit_generator.state = json.loads(metadata["random.numpy"])
        torch.set_rng_state(tensors["random.torch"])
        if "random.cuda" in tensors and torch.cuda.is_available():
            torch.cuda.set_rng_state(tensors["random.cuda"])
        logger.info("resumed after epoch %d", self.progress.epoch)


def _unknown_replacement(config: Config, vocabulary: Vocabulary) -> UnknownReplacement | None:
    if config.corpus.unk_singleton == 0:
        return None
    return UnknownReplacement(
        config.corpus.unk_singleton,
        vocabulary.words.singletons,
        vocabulary.characters.singletons,
        tuple(alphabet.singletons for alphabet in vocabulary.features.values()),
    )


def _history_row(entry: dict[str, Any]) -> str:
    """An epoch as one row of the table; scores in percent."""
    dev = entry["dev"]
    names = ("precision", "recall", "f1", "accuracy")
    return _table_row(
        [
            entry["epoch"],
            f"{entry['loss']:.4f}",
            f"{entry['learning_rate']:.2e}",
            *(f"{100 * dev[name]:.2f}" if dev else "-" for name in names),
            f"{entry['sentences_per_second']:.0f}",
            f"{entry['seconds']:.1f}",
            "best" if dev and entry["best"] else "",
        ]
    )


def _table_row(cells: Sequence[object]) -> str:
    return " ".join(
        f"{cell!s:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)
    ).rstrip()
