"""Training on the whole corpus at once, iteration by iteration: the classical CRF and its learners.

The weights of the last iteration are kept: the objective is what is optimized, and a dev corpus
only says where that leads.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ncrf.config import Config
from ncrf.data.dataset import Dataset
from ncrf.data.vocabulary import Vocabulary
from ncrf.errors import InputError
from ncrf.evaluate import Score, history_scores
from ncrf.model import folder
from ncrf.model.labeler import Labeler, build_labeler
from ncrf.train import checkpoint
from ncrf.train.corpus_learners import LabelledCorpus, build_learner
from ncrf.train.feed import usable_sentences
from ncrf.train.full_batch import run
from ncrf.train.interrupt import Interrupt
from ncrf.train.learner import Iteration, Learner
from ncrf.train.progress import table_row

logger = logging.getLogger(__name__)

_SCORED_EVERY = 10  # iterations between two looks at the dev corpus
_SHARE = 0.05  # of the time, at most, goes into writing what resume needs
_COLUMNS = ("iter", "log-lik.", "gradient", "features", "passes", "P", "R", "F1", "acc", "s")
_WIDTHS = (5, 13, 10, 10, 6, 7, 7, 7, 7, 7)
_LEARNER = "learner."


@dataclass
class CorpusProgress:
    """What a resumed training knows beside its learner: the history."""

    history: list[dict[str, Any]] = field(default_factory=list)


class CorpusTrainer:
    """Trains the classical CRF on a whole corpus and keeps its model folder.

    ``evaluate`` scores the dev corpus with the model as it is; None without one.
    """

    def __init__(
        self,
        labeler: Labeler,
        train: Dataset,
        config: Config,
        model_dir: Path,
        vocabulary: Vocabulary,
        evaluate: Callable[[], Score] | None,
    ) -> None:
        self.labeler, self.config, self.model_dir = labeler, config, model_dir
        self.vocabulary = vocabulary
        self._evaluate = evaluate
        self._corpus = _labelled(train, config, vocabulary)
        self._learner = build_learner(config, self._corpus)
        self._begun = self._written = time.monotonic()
        self._cost = 0.0  # seconds that writing the state took the last time
        self.progress = CorpusProgress()

    def run(self) -> None:
        """Run the learner to its end; the labeler then has its weights, and so has the folder.

        Features whose weight is zero are dropped: vocabulary and labeler are new objects then.
        """
        logger.info(table_row(_COLUMNS, _WIDTHS))
        with Interrupt() as interrupt:

            def done(record: Iteration, learner: Learner) -> None:
                self._note(record, learner)
                if interrupt.wanted or self._due():
                    self._write_state()
                    interrupt.raise_if_wanted()

            reason = run(self._learner, iterations=self.config.training.iteration, callback=done)
        self._fill()
        logger.info("ended: %s", reason)
        self._drop_zeros()
        checkpoint.publish(
            self.model_dir,
            self.labeler.state_dict(),
            self.progress.history,
            folder.description_files(self.config, self.vocabulary),
        )

    def _note(self, record: Iteration, learner: Learner) -> None:
        """One row of the table, and of the history."""
        dev = None
        last = record.number == self.config.training.iteration or learner.done is not None
        if self._evaluate is not None and (last or record.number % _SCORED_EVERY == 0):
            self._fill()
            dev = history_scores(self._evaluate())
        entry = {
            "epoch": record.number,
            "loss": record.objective / max(1, len(self._corpus.attributes.offsets) - 1),
            "log_likelihood": self._log_likelihood(record, learner),
            "gradient_norm": record.gradient_norm,
            "active_features": record.active,
            "learning_rate": record.step,
            "evaluations": record.evaluations,
            "dev": dev,
            "best": last,
            "seconds": round(record.seconds, 4),
        }
        self.progress.history.append(entry)
        logger.info(_row(entry))

    def _log_likelihood(self, record: Iteration, learner: Learner) -> float | None:
        """Of the corpus, in nats, without the penalties; None for learners that have none."""
        if record.gradient_norm is None:
            return None
        if self.config.training.optimizer != "LBFGS":
            return -record.objective
        keys, weights = self.config.whole_corpus, learner.weights
        penalty = keys.c2 * float(weights @ weights)
        if keys.l1:
            penalty += keys.l1 * float(weights.abs().sum())
        return penalty - record.objective

    def _fill(self) -> None:
        """Give the labeler the learner's weights."""
        index, weights = self._corpus.index, self._learner.weights
        states, _, bigram = index.parts
        templates, crf = self.labeler.templates, self.labeler.inference.crf
        assert templates is not None
        transitions = torch.from_numpy(index.transition_scores(weights.numpy()))
        with torch.no_grad():
            templates.state_weights.copy_(weights[states])
            templates.bigram_weights.copy_(weights[bigram])
            crf.transitions.copy_(transitions)

    def _drop_zeros(self) -> None:
        """Go over to the features whose weight is not zero."""
        features, weights = self.vocabulary.templates, self._learner.weights.float()
        assert features is not None
        keep = weights.numpy() != 0
        dropped = int((~keep).sum())
        if not dropped:
            return
        logger.info("%s features of weight 0 are dropped", f"{dropped:,}")
        device = self.labeler.device
        self.vocabulary = replace(self.vocabulary, templates=features.kept(keep))
        states, _, bigram = features.index.parts
        kept = torch.from_numpy(keep)
        tensors = self.labeler.state_dict()
        tensors["templates.state_weights"] = weights[states][kept[states]]
        tensors["templates.bigram_weights"] = weights[bigram][kept[bigram]]
        self.labeler = build_labeler(self.config, self.vocabulary)
        self.labeler.load_state_dict(tensors)
        self.labeler.to(device)

    def _due(self) -> bool:
        """Whether the state is to be written: that may take a twentieth of the time."""
        now = time.monotonic()
        minutes = self.config.training.checkpoint_every
        if minutes is not None:
            return now - self._written >= 60 * minutes
        return now - self._written >= self._cost / _SHARE

    def _write_state(self) -> None:
        begun = time.monotonic()
        tensors: dict[str, Tensor] = {
            f"{_LEARNER}{name}": value for name, value in self._learner.state_dict().items()
        }
        metadata = {"progress": json.dumps(vars(self.progress))}
        folder.write_tensors(self.model_dir / checkpoint.STATE, tensors, metadata)
        self._written = time.monotonic()
        self._cost = self._written - begun

    def restore(self) -> None:
        """Go back to the last state of an unfinished training that was written."""
        path = self.model_dir / checkpoint.STATE
        tensors, metadata = folder.read_tensors(path), folder.read_metadata(path)
        try:
            self.progress = CorpusProgress(**json.loads(metadata["progress"]))
            self._learner.load_state_dict(
                {
                    name.removeprefix(_LEARNER): value
                    for name, value in tensors.items()
                    if name.startswith(_LEARNER)
                }
            )
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise InputError(
                "is not the state of this training", file=path, remedy="overwrite=True"
            ) from error
        logger.info("resumed after iteration %d", len(self.progress.history))

    @property
    def where(self) -> str:
        """How far it has come, for the log."""
        return f"iteration {len(self.progress.history)}"


def _labelled(train: Dataset, config: Config, vocabulary: Vocabulary) -> LabelledCorpus:
    """The sentences to learn from: MAX_SENTENCE_LENGTH leaves longer ones out, loudly."""
    assert train.attributes is not None and train.labels is not None
    assert vocabulary.templates is not None
    corpus = LabelledCorpus(vocabulary.templates.index, train.attributes, train.labels)
    rows = usable_sentences(train, config.corpus.max_sentence_length)
    return corpus if len(rows) == train.num_sentences else corpus.chosen(rows)


def _row(entry: dict[str, Any]) -> str:
    """An iteration as one row of the table; scores in percent."""
    dev, likelihood = entry["dev"], entry["log_likelihood"]
    names = ("precision", "recall", "f1", "accuracy")
    gradient = entry["gradient_norm"]
    return table_row(
        [
            entry["epoch"],
            "-" if likelihood is None else f"{likelihood:.4f}",
            "-" if gradient is None else f"{gradient:.3e}",
            entry["active_features"],
            entry["evaluations"],
            *(f"{100 * dev[name]:.2f}" if dev else "-" for name in names),
            f"{entry['seconds']:.2f}",
        ],
        _WIDTHS,
    )
