"""Training by minibatches: one epoch after another, the best by the dev set is kept."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from ncrf.config import Config
from ncrf.crf import RowError
from ncrf.data.batch import Batch, UnknownReplacement
from ncrf.data.dataset import Dataset, IntArray
from ncrf.data.partial import possible_labels
from ncrf.data.vocabulary import Vocabulary
from ncrf.errors import InputError, NcrfError
from ncrf.evaluate import Score, history_scores
from ncrf.model import folder, side_by_side
from ncrf.model.labeler import Labeler
from ncrf.train import checkpoint
from ncrf.train.feed import Feed, Step, ahead, usable_sentences
from ncrf.train.gradients import gradient
from ncrf.train.interrupt import Interrupt
from ncrf.train.optimizers import LearningRate, Updates
from ncrf.train.progress import (
    GradientWatch,
    Progress,
    header,
    history_row,
    watch_entities,
    watch_loss,
)
from ncrf.train.recollection import Recollection

logger = logging.getLogger(__name__)

_UNREAD_STEPS = 64  # on a GPU, so many losses are read at a time: each reading waits for it
_SPARED = 512  # tokens of padding for which a piece more is worth its while


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
        threads: int = 1,
    ) -> None:
        """``threads`` threads share what layers compute side by side."""
        self.labeler = labeler
        self.train_set = train
        self.config = config
        self.model_dir = model_dir
        self._evaluate = evaluate
        self._rows = usable_sentences(train, config.corpus.max_sentence_length)
        self._feed = Feed(
            train,
            self._rows,
            batch_size=config.training.batch_size,
            bucket=config.training.bucket,
            max_tokens=config.training.max_batch_tokens,
            max_word_length=config.corpus.max_word_length,
            seed=config.run.seed,
            possible=possible_labels(train.label_strings, vocabulary.labels)
            if partial_labels
            else None,
            replacement=_unknown_replacement(config, vocabulary),
            spared=_SPARED if _may_split(labeler) else None,
        )
        lengths = train.lengths[self._rows] if not labeler.classify else np.ones(len(self._rows))
        self._guessing = float(lengths.mean()) * math.log(max(2, len(vocabulary.labels)))
        self._updates = Updates(labeler, config.training)
        self._recollection = None
        if labeler.documents is not None:
            self._recollection = Recollection(train, len(vocabulary.labels), labeler.device)
        self._threads = threads
        self._rate = LearningRate(config.training)
        self._saved = time.monotonic()
        self._unread: list[tuple[Tensor, Tensor, Step, int]] = []
        self._gradients = GradientWatch()
        self.progress = Progress()

    @property
    def where(self) -> str:
        """How far it has come, for the log."""
        steps = f" and {self.progress.step} steps" if self.progress.step else ""
        return f"epoch {self.progress.epoch}{steps}"

    def run(self) -> None:
        """Train all epochs; ends with the best weights in the labeler and the folder."""
        keys = self.config.training
        logger.info(header())
        with Interrupt() as interrupt, side_by_side.threads(self._threads):
            while self.progress.epoch < keys.iteration and not self._out_of_patience():
                self._epoch(interrupt)
        with self._updates.averaged():
            checkpoint.publish(
                self.model_dir, self.labeler.state_dict() if self._evaluate is None else None
            )
        checkpoint.write_history(self.model_dir, self.progress.history)
        self.labeler.load_state_dict(
            folder.read_tensors(self.model_dir / folder.WEIGHTS), strict=True
        )

    def _epoch(self, interrupt: Interrupt) -> None:
        progress = self.progress
        rate = self._pass_over_corpus(interrupt)
        loss = progress.loss / len(self._rows)
        watch_loss(progress, loss, self._guessing)
        seconds, progress.seconds = progress.seconds, 0.0
        progress.epoch, progress.step, progress.loss = progress.epoch + 1, 0, 0.0
        with self._updates.averaged():
            score = self._evaluate() if self._evaluate is not None else None
        rose = True
        if score is not None:
            watch_entities(progress, score)
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
            with self._updates.averaged():
                checkpoint.publish(self.model_dir, self.labeler.state_dict())
        self._write_state()
        if self._evaluate is not None:
            checkpoint.write_history(self.model_dir, progress.history)
        logger.info(history_row(entry))

    def _pass_over_corpus(self, interrupt: Interrupt) -> float:
        """The steps of an epoch that are left, summed up in the progress; the last rate."""
        progress, epoch = self.progress, self.progress.epoch
        self.labeler.train()
        count = -(-len(self._rows) // self.config.training.batch_size)
        start, before = time.perf_counter(), progress.seconds
        done = min(progress.step * self.config.training.batch_size, len(self._rows))
        with (
            tqdm(
                total=len(self._rows),
                initial=done,
                desc=f"epoch {epoch + 1}",
                unit="sent",
                leave=False,
                disable=None,
            ) as bar,
            self._steps(epoch, progress.step) as steps,
        ):
            for step in steps:
                rate = self._rate.at(epoch, (progress.step + 1) / count)
                self._step(step, progress.step + 1, rate)
                progress.step += 1
                progress.seconds = before + time.perf_counter() - start
                bar.update(len(step.rows))
                if interrupt.wanted or self._due():
                    self._read_losses()
                    self._write_state()
                    interrupt.raise_if_wanted()
        self._read_losses()
        self._updates.settle()
        if not all(bool(torch.isfinite(weights).all()) for weights in self.labeler.parameters()):
            raise NcrfError(
                f"the weights are not finite after epoch {epoch + 1}; {self._what_is_kept()}"
            )
        progress.seconds = before + time.perf_counter() - start
        return self._rate.at(epoch, 1.0)

    def _steps(self, epoch: int, start: int) -> AbstractContextManager[Iterator[Step]]:
        """The steps of an epoch, made in a thread of their own for a GPU.

        On a CPU that thread would take the interpreter from the one that computes: it costs more
        than it saves (docs/log.md).
        """
        device = self.labeler.device
        if device.type == "cpu":
            return nullcontext(self._feed.steps(epoch, start, device))
        return ahead(lambda: self._feed.steps(epoch, start, device))

    def _step(self, step: Step, number: int, rate: float) -> None:
        """One optimizer step; its summed loss is added to the progress, on a GPU later."""
        keys = self.config.training
        self._updates.zero_grad()
        scale = 1.0 / len(step.rows) if keys.ave_batch_loss else 1.0

        def failed(error: ValueError, batch: Batch) -> Exception:
            if not isinstance(error, RowError):
                return error
            return self._row_failed(error, step, batch.index, number)

        amp = keys.amp != "none"
        total = gradient(
            self.labeler,
            step.batches,
            scale=scale,
            amp=amp,
            failed=failed,
            recollection=self._recollection,
        )
        norm = self._updates.step(rate)
        self._unread.append((total, norm, step, number))
        if total.device.type == "cpu" or len(self._unread) >= _UNREAD_STEPS:
            self._read_losses()

    def _read_losses(self) -> None:
        """Add up the losses of the steps since the last time; NcrfError for one not finite."""
        unread, self._unread = self._unread, []
        if not unread:
            return
        values = torch.stack([torch.stack([x.double(), n.double()]) for x, n, _, _ in unread])
        for (loss, norm), (_, _, step, number) in zip(values.tolist(), unread, strict=True):
            if not math.isfinite(loss) or not math.isfinite(norm):
                what = f"the loss is {loss}"
                if math.isfinite(loss):
                    what = f"the norm of the gradient is {norm}"
                raise NcrfError(self._not_finite(step.rows, number, what))
            self.progress.loss += loss
            if self._gradients.far_above(norm) and self.config.training.clip is None:
                self._say_long_gradient(norm, step.rows, number)

    def _say_long_gradient(self, norm: float, rows: IntArray, number: int) -> None:
        usual, bound = self._gradients.usual, self._gradients.bound()
        self.progress.say_once(
            "long gradient",
            f"epoch {self.progress.epoch + 1}, batch {number} (sentences at lines "
            f"{self._lines(rows)}): a gradient of norm {norm:,.4g}, where {usual:,.4g} is usual. "
            f"One such step can spoil a training: clip={bound:g} would bound it",
        )

    def _row_failed(self, error: RowError, step: Step, index: IntArray, number: int) -> NcrfError:
        """Why the CRF has no answer for a row: numbers that are not finite, or its labels."""
        with torch.no_grad():
            finite = all(bool(torch.isfinite(self.labeler(x)).all()) for x in step.batches)
        if not finite:
            return NcrfError(self._not_finite(step.rows, number, "the loss is nan"))
        line = int(self.train_set.lines[index[error.row]])
        return InputError(str(error), file=self.train_set.file, line=line)

    def _not_finite(self, rows: IntArray, number: int, what: str) -> str:
        return (
            f"{self.train_set.file}: {what} in epoch {self.progress.epoch + 1}, "
            f"batch {number} (sentences at lines {self._lines(rows)}); {self._what_is_kept()}"
        )

    def _lines(self, rows: IntArray) -> str:
        return ", ".join(str(line) for line in sorted(self.train_set.lines[rows].tolist()))

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

    def _due(self) -> bool:
        """Whether ``checkpoint_every`` minutes have passed since the state was last written."""
        minutes = self.config.training.checkpoint_every
        return minutes is not None and time.monotonic() - self._saved >= 60 * minutes

    def _write_state(self) -> None:
        """Write all that resume needs, as one file."""
        self.progress.halvings = self._rate.halvings
        self.progress.epochs_without_rise = self._rate.epochs_without_rise
        tensors = {f"model.{name}": value for name, value in self.labeler.state_dict().items()}
        tensors |= self._updates.tensors()
        if self._recollection is not None:
            tensors |= self._recollection.tensors()
        tensors["random.torch"] = torch.get_rng_state()
        if torch.cuda.is_available():
            tensors["random.cuda"] = torch.cuda.get_rng_state()
        metadata = {"progress": json.dumps(vars(self.progress))}
        folder.write_tensors(self.model_dir / checkpoint.STATE, tensors, metadata)
        self._saved = time.monotonic()

    def restore(self) -> None:
        """Go back to the last state of an unfinished training that was written."""
        path = self.model_dir / checkpoint.STATE
        tensors, metadata = folder.read_tensors(path), folder.read_metadata(path)
        try:
            self.progress = Progress(**json.loads(metadata["progress"]))
            weights = {
                name.removeprefix("model."): value
                for name, value in tensors.items()
                if name.startswith("model.")
            }
            self.labeler.load_state_dict(weights)
            self._updates.restore(tensors)
            if self._recollection is not None:
                self._recollection.restore(tensors)
            torch.set_rng_state(tensors["random.torch"])
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise InputError(
                "is not the state of this training", file=path, remedy="overwrite=True"
            ) from error
        self._rate.halvings = self.progress.halvings
        self._rate.epochs_without_rise = self.progress.epochs_without_rise
        if "random.cuda" in tensors and torch.cuda.is_available():
            torch.cuda.set_rng_state(tensors["random.cuda"])
        where = f", step {self.progress.step}" if self.progress.step else ""
        logger.info("resumed after epoch %d%s", self.progress.epoch, where)


def _may_split(labeler: Labeler) -> bool:
    """Whether a batch in pieces is the same batch, and the sooner done the less padding it has.

    A GPU computes padding beside the words; batch normalization looks at all of a batch.
    """
    normalizes = any(
        isinstance(module, nn.modules.batchnorm._BatchNorm) for module in labeler.modules()
    )
    return labeler.device.type == "cpu" and not normalizes


def _unknown_replacement(config: Config, vocabulary: Vocabulary) -> UnknownReplacement | None:
    if config.corpus.unk_singleton == 0:
        return None
    return UnknownReplacement(
        config.corpus.unk_singleton,
        vocabulary.words.singletons,
        vocabulary.characters.singletons,
        tuple(alphabet.singletons for alphabet in vocabulary.features.values()),
    )
