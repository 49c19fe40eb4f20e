"""The Tagger: train, load, predict, evaluate, save - all that a Python user touches."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ncrf.config import Config, load_config, model_folder
from ncrf.data import corpora
from ncrf.data.columns import Sentence
from ncrf.data.partial import UNKNOWN_LABEL
from ncrf.decode.load import load_predictor
from ncrf.decode.predict import Predictor
from ncrf.decode.prediction import Prediction, Wanted
from ncrf.errors import InputError
from ncrf.evaluate import Score
from ncrf.model import folder
from ncrf.train import checkpoint
from ncrf.train.session import train_model

logger = logging.getLogger(__name__)

_NO_FEATURES = ("words", "labels")
_STREAM_WINDOW = 1000

SentenceLike = Sequence[str] | Mapping[str, Sequence[str]]


class Tagger:
    """A trained model with all it needs to label sentences; made by ``train`` or ``load``."""

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor
        self.config = predictor.config
        self.vocabulary = predictor.vocabulary

    # ---------------------------------------------------------------- making one

    @classmethod
    def train(cls, config: Config | str | Path | Mapping[str, Any], **overrides: Any) -> Tagger:
        """Train as a config says and return the best model; it is in ``model_dir`` as well.

        ``config`` is a file, a mapping of keys, or a Config; ``overrides`` are keys too.
        The global random state of torch is as it was afterwards.
        Raises ConfigError and InputError before any work, NcrfError for a failed training.
        """
        return cls(train_model(load_config(config, {"status": "train", **overrides})))

    @classmethod
    def load(cls, model_dir: str | Path, **overrides: Any) -> Tagger:
        """Load a model folder; ``overrides`` are keys that do not shape the model.

        Raises InputError for a folder that is missing, damaged or unfinished.
        """
        decode = load_config({"status": "decode", **overrides}, check_files=False)
        predictor = load_predictor(model_folder(str(model_dir)), decode)
        if predictor.lacks_vectors:
            logger.warning(
                "%s is not at hand: words that training did not see are unknown (give the file as "
                "word_emb_dir=, or train with vectors_in_model=True)",
                predictor.config.words.word_emb_dir,
            )
        return cls(predictor)

    # ---------------------------------------------------------------- using it

    def predict(
        self,
        sentences: Iterable[SentenceLike],
        nbest: int | None = None,
        marginals: bool = False,
    ) -> list[Prediction]:
        """Label sentences; the predictions come in the order of the sentences.

        A sentence is a sequence of words, or a mapping ``{"words": [...], "POS": [...]}`` when
        the model has feature columns. With ``forced_labels=True`` the mapping may have ``labels``
        to keep, ``?`` where none is given. ``nbest`` adds that many labelings, best first (None or
        0: none), ``marginals`` the probability of the printed label of each word.
        """
        wanted = _wanted(nbest, marginals)
        given = [self._sentence(s, i) for i, s in enumerate(_not_a_string(sentences))]
        return [
            prediction
            for window in _chunks(given)
            for prediction in self.predictor.predict(window, wanted)
        ]

    def stream(
        self,
        sentences: Iterable[SentenceLike],
        nbest: int | None = None,
        marginals: bool = False,
    ) -> Iterator[Prediction]:
        """Like ``predict`` for any number of sentences: lazily, with bounded memory."""
        wanted = _wanted(nbest, marginals)
        numbered = (self._sentence(s, i) for i, s in enumerate(_not_a_string(sentences)))
        while window := list(islice(numbered, _STREAM_WINDOW)):
            yield from self.predictor.predict(window, wanted)

    def evaluate(self, path: str | Path) -> Score:
        """Score the model on a labelled file: precision, recall, f1, accuracy, per_type."""
        corpus = corpora.load_corpus(
            self.config, str(path), features=tuple(self.vocabulary.features)
        )
        return self.predictor.score(self.predictor.encode(corpus))

    def save(self, model_dir: str | Path) -> None:
        """Write the model folder; InputError for a folder that holds anything else."""
        place = Path(model_dir)
        checkpoint.check_folder(place, resume=False, overwrite=False)
        folder.write_description(place, self.config, self.vocabulary)
        weights = self.predictor.labeler.state_dict()
        folder.write_tensors(place / folder.WEIGHTS, weights)
        if self.config.words.vectors_in_model and self.predictor.new_words is not None:
            self.predictor.new_words.store(place)

    def _sentence(self, given: SentenceLike, number: int) -> Sentence:
        """Check one sentence of a caller."""
        features: dict[str, list[str]] = {}
        words: Any = given
        if isinstance(given, Mapping):
            if "words" not in given:
                raise InputError(f"sentence {number} has no 'words'")
            words = given["words"]
            features = {
                name: list(given[name]) for name in given if name not in ("words", "labels")
            }
        if isinstance(words, str):
            raise InputError(
                f"sentence {number} is a string", remedy="split it into a list of words"
            )
        words = list(words)
        if not words and self.config.corpus.sentence_classification:
            raise InputError(f"sentence {number} has no words", remedy="at least one")
        for position, word in enumerate(words):
            if not isinstance(word, str) or not word:
                raise InputError(
                    f"sentence {number}, word {position}: {word!r} is no word",
                    remedy="a string of at least one character",
                )
        self._check_features(features, len(words), number)
        return Sentence(
            words=words, labels=self._forced(given, len(words), number), features=features
        )

    def _forced(self, given: SentenceLike, length: int, number: int) -> list[str] | None:
        """The labels to decode around, under ``forced_labels=True``; ``?`` where none are given."""
        if not self.config.decoding.forced_labels:
            return None
        if not isinstance(given, Mapping) or "labels" not in given:
            return [UNKNOWN_LABEL] * length
        labels = list(given["labels"])
        if len(labels) != length:
            raise InputError(
                f"sentence {number}: {len(labels)} labels for {length} words",
                remedy=f"one label, or {UNKNOWN_LABEL}, for each word",
            )
        return labels

    def _check_features(self, features: dict[str, list[str]], length: int, number: int) -> None:
        needed = set(self.vocabulary.features) - {
            spec.name for spec in self.config.corpus.feature if spec.source
        }
        for name in sorted(needed):
            found = len(features[name]) if name in features else None
            if found != length:
                what = "is missing" if found is None else f"has {found} values"
                raise InputError(
                    f"sentence {number}: feature {name!r} {what}",
                    remedy=f"one value for each of the {length} words",
                )


def _wanted(nbest: int | None, marginals: bool) -> Wanted:
    if nbest is not None and (not isinstance(nbest, int) or nbest < 0):
        raise InputError(f"nbest is {nbest!r}", remedy="a whole number, at least 0, or None")
    return Wanted(nbest=nbest or None, marginals=marginals)


def _not_a_string(sentences: Iterable[SentenceLike]) -> Iterable[SentenceLike]:
    if isinstance(sentences, str):
        raise InputError("the sentences are one string", remedy="a list of lists of words")
    return sentences


def _chunks(sentences: list[Sentence]) -> Iterator[list[Sentence]]:
    for start in range(0, len(sentences), 10 * _STREAM_WINDOW):
        yield sentences[start : start + 10 * _STREAM_WINDOW]
