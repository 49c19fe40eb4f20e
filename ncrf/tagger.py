"""The Tagger: train, load, predict, evaluate, save - all that a Python user touches."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ncrf.config import Config, load_config, model_folder
from ncrf.data import corpora
from ncrf.data.columns import BOUNDARY, Sentence
from ncrf.data.partial import UNKNOWN_LABEL
from ncrf.decode.analysis import analyze_file
from ncrf.decode.load import load_predictor
from ncrf.decode.predict import Predictor
from ncrf.decode.prediction import Prediction, Wanted
from ncrf.errors import InputError
from ncrf.evaluate import Score
from ncrf.evaluate.analysis import TOP, Analysis
from ncrf.evaluate.analysis_report import report_markdown
from ncrf.model import folder
from ncrf.model.labeler import reads_documents
from ncrf.train import checkpoint, folder_lock
from ncrf.train.training import train_model

logger = logging.getLogger(__name__)

_STREAM_WINDOW = 1_000
_PREDICT_WINDOW = 10_000

SentenceLike = Sequence[str] | Mapping[str, Sequence[str]]


class Tagger:
    """A trained model with all it needs to label sentences; made by ``train`` or ``load``."""

    def __init__(self, predictor: Predictor, history: bytes = b"") -> None:
        """``history`` is the content of the training's ``history.jsonl``, which is saved too."""
        self.predictor = predictor
        self.config = predictor.config
        self.vocabulary = predictor.vocabulary
        self._history = history

    # ---------------------------------------------------------------- making one

    @classmethod
    def train(cls, config: Config | str | Path | Mapping[str, Any], **overrides: Any) -> Tagger:
        """Train as a config says and return the best model; it is in ``model_dir`` as well.

        ``config`` is a file, a mapping of keys, or a Config; ``overrides`` are keys too.
        The global random state of torch is as it was afterwards.
        Raises ConfigError and InputError before any work, NcrfError for a failed training.
        """
        predictor = train_model(load_config(config, {"status": "train", **overrides}))
        return cls(predictor, folder.history_of(Path(predictor.config.files.model_dir or "")))

    @classmethod
    def load(cls, model_dir: str | Path, **overrides: Any) -> Tagger:
        """Load a model folder; ``overrides`` are keys that do not shape the model.

        Raises InputError for a folder that is missing, damaged or unfinished.
        """
        decode = load_config({"status": "decode", **overrides}, check_files=False)
        place = Path(model_folder(str(model_dir)))
        predictor = load_predictor(place, decode)
        if predictor.lacks_vectors:
            logger.warning(
                "%s is not at hand: words that training did not see are unknown (give the file as "
                "word_emb_dir=, or train with vectors_in_model=True)",
                predictor.config.words.word_emb_dir,
            )
        return cls(predictor, folder.history_of(place))

    # ---------------------------------------------------------------- using it

    def predict(
        self,
        sentences: Iterable[SentenceLike],
        nbest: int | None = None,
        marginals: bool = False,
    ) -> list[Prediction]:
        """Label sentences; the predictions come in the order of the sentences.

        A sentence is a sequence of words, or a mapping ``{"words": [...], "POS": [...]}`` when
        the model has feature columns. ``["-DOCSTART-"]`` begins a document, as in a file. With
        ``forced_labels=True`` the mapping may have ``labels`` to keep, ``?`` where none is given.
        ``nbest`` adds that many labelings, best first (0: none; None: what the key of that name
        says), ``marginals`` the probability of the printed label of each word.
        """
        wanted = self._wanted(nbest, marginals)
        given = [self._sentence(s, i) for i, s in enumerate(_not_a_string(sentences))]
        return [
            prediction
            for window in self._windows(given, _PREDICT_WINDOW, wanted)
            for prediction in self.predictor.predict(window, wanted)
        ]

    def stream(
        self,
        sentences: Iterable[SentenceLike],
        nbest: int | None = None,
        marginals: bool = False,
    ) -> Iterator[Prediction]:
        """Like ``predict`` for any number of sentences: lazily, with bounded memory."""
        wanted = self._wanted(nbest, marginals)
        numbered = (self._sentence(s, i) for i, s in enumerate(_not_a_string(sentences)))
        for window in self._windows(numbered, _STREAM_WINDOW, wanted):
            yield from self.predictor.predict(window, wanted)

    def _windows(
        self, sentences: Iterable[Sentence], size: int, wanted: Wanted
    ) -> Iterator[list[Sentence]]:
        """Lists of ``size`` sentences or, for a model that reads documents, of whole ones."""
        if reads_documents(self.config):
            yield from self.predictor.windows(sentences, wanted)
            return
        left = iter(sentences)
        while window := list(islice(left, size)):
            yield window

    def evaluate(self, path: str | Path) -> Score:
        """Score the model on a labelled file: precision, recall, f1, accuracy, per_type."""
        corpus = corpora.load_corpus(
            self.config, str(path), features=tuple(self.vocabulary.features)
        )
        return self.predictor.score(self.predictor.encode(corpus))

    def analyze(
        self,
        path: str | Path,
        *,
        train: str | Path | None = None,
        ignore_case: bool = False,
        top: int = TOP,
    ) -> Analysis:
        """Count what the model gets wrong on a labelled file, in several ways.

        ``train`` names the training corpus, whose numbers the model does not keep, and with
        ``ignore_case`` words of it count in any case: both matter to the vocabulary classes alone.
        ``top`` is how many of the most frequent errors are kept. Raises InputError for a file
        without labels, or of other labels than the model's.
        """
        corpus = None if train is None else str(train)
        return analyze_file(
            self.predictor, str(path), train=corpus, ignore_case=ignore_case, top=top
        )

    def report(
        self,
        path: str | Path,
        *,
        train: str | Path | None = None,
        ignore_case: bool = False,
        top: int = TOP,
    ) -> str:
        """What `analyze` counts, as a page of Markdown."""
        return report_markdown(self.analyze(path, train=train, ignore_case=ignore_case, top=top))

    def save(self, model_dir: str | Path) -> None:
        """Write the model folder, whole or not at all.

        Raises InputError for a folder that holds anything else, NcrfError if it cannot be written.
        """
        place = Path(model_dir)
        folder_lock.refuse_locked(place)
        if checkpoint.folder_state(place) in ("finished", "unfinished"):
            raise InputError("holds a model", file=place, remedy="save into another folder")
        checkpoint.check_folder(place, resume=False, overwrite=False)
        files = folder.description_files(self.config, self.vocabulary)
        if self.config.words.vectors_in_model and self.predictor.new_words is not None:
            files[folder.VECTORS] = self.predictor.new_words.stored()
        if self._history:
            files[folder.HISTORY] = self._history
        files[folder.WEIGHTS] = folder.tensor_bytes(self.predictor.labeler.state_dict())
        folder.write_model(place, files)

    def _wanted(self, nbest: int | None, marginals: bool) -> Wanted:
        """What a call asks for, beside what the keys ``nbest`` and ``marginals`` always do."""
        decoding = self.config.decoding
        nbest = decoding.nbest if nbest is None else nbest
        if nbest is not None and (not isinstance(nbest, int) or nbest < 0):
            raise InputError(f"nbest is {nbest!r}", remedy="a whole number, at least 0, or None")
        return Wanted(nbest=nbest or None, marginals=marginals or decoding.marginals)

    def _sentence(self, given: SentenceLike, number: int) -> Sentence:
        """Check one sentence of a caller."""
        words: Any = given
        columns: Mapping[str, Any] = {}
        if isinstance(given, Mapping):
            if "words" not in given:
                raise InputError(f"sentence {number} has no 'words'")
            words, columns = given["words"], given
        words = _listed(words, f"sentence {number}", "split it into a list of words")
        if not words and self.config.corpus.sentence_classification:
            raise InputError(f"sentence {number} has no words", remedy="at least one")
        for position, word in enumerate(words):
            if not isinstance(word, str) or not word:
                raise InputError(
                    f"sentence {number}, word {position}: {word!r} is no word",
                    remedy="a string of at least one character",
                )
        if words == [BOUNDARY] and not self.config.corpus.sentence_classification:
            return Sentence(words, boundary=True)
        return Sentence(
            words=words,
            labels=self._forced(columns, len(words), number),
            features=self._features(columns, len(words), number),
        )

    def _forced(self, given: Mapping[str, Any], length: int, number: int) -> list[str] | None:
        """The labels to decode around, under ``forced_labels=True``; ``?`` where none are given."""
        if not self.config.decoding.forced_labels:
            return None
        if "labels" not in given:
            return [UNKNOWN_LABEL] * length
        labels = _strings(given["labels"], f"sentence {number}: 'labels'", length)
        if len(labels) != length:
            raise InputError(
                f"sentence {number}: {len(labels)} labels for {length} words",
                remedy=f"one label, or {UNKNOWN_LABEL}, for each word",
            )
        return labels

    def _features(self, given: Mapping[str, Any], length: int, number: int) -> dict[str, list[str]]:
        """The values of the model's feature columns, one for each word."""
        computed = {spec.name for spec in self.config.corpus.feature if spec.source}
        features: dict[str, list[str]] = {}
        for name in sorted(set(self.vocabulary.features) - computed):
            what = f"sentence {number}: feature {name!r}"
            remedy = f"one value for each of the {length} words"
            if name not in given:
                raise InputError(f"{what} is missing", remedy=remedy)
            values = _strings(given[name], what, length)
            if len(values) != length:
                raise InputError(f"{what} has {len(values)} values", remedy=remedy)
            features[name] = values
        return features


def _strings(given: Any, what: str, length: int) -> list[str]:
    """What a caller gives for the words of a sentence, as a list of strings."""
    values = _listed(given, what, f"a list of {length} strings, one for each word")
    for position, value in enumerate(values):
        if not isinstance(value, str):
            raise InputError(f"{what}, word {position}: {value!r} is no string")
    return values


def _listed(given: Any, what: str, remedy: str) -> list[Any]:
    """A list of what is given, unless that is a string (a list of characters) or nothing such."""
    if isinstance(given, str):
        raise InputError(f"{what} is a string", remedy=remedy)
    if not isinstance(given, Iterable):
        raise InputError(f"{what} is {given!r}", remedy=remedy)
    return list(given)


def _not_a_string(sentences: Iterable[SentenceLike]) -> Iterable[SentenceLike]:
    if isinstance(sentences, str):
        raise InputError("the sentences are one string", remedy="a list of lists of words")
    return sentences
