"""Scoring a file of predicted labels against a gold file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ncrf.config import Config
from ncrf.data.corpora import open_corpus
from ncrf.data.schemes import PLAIN, SchemeDetector, scheme_name
from ncrf.data.sentence import Sentence
from ncrf.errors import InputError
from ncrf.evaluate.oracle import best_labeling
from ncrf.evaluate.pairing import labels_of, paired_sentences
from ncrf.evaluate.predicted_files import PREDICTED, read_both, read_predicted
from ncrf.evaluate.spans import Score, score_accuracy, score_spans


@dataclass(frozen=True)
class LabelledPair:
    """The labels of two files of the same sentences, gold and predicted, and gold's scheme."""

    gold: list[Sequence[str]]
    predicted: list[Sequence[str]]
    scheme: str


def score_files(config: Config, gold: str, predicted: str, *, oracle: bool = False) -> Score:
    """Score ``predicted`` against ``gold``: by spans, or by accuracy where labels mark none.

    See `read_pair`; the config's ``score_policy`` counts.
    """
    return _score(config, read_pair(config, gold, predicted, oracle=oracle))


def score_columns(config: Config, path: str) -> Score:
    """Score the last column of a file against the one before it, as conlleval does.

    The first column is the word, unless ``columns=`` names another and, as ``label``, that of gold.
    Raises InputError for a file of fewer than three columns, or one that is not in columns.
    """
    if config.corpus.sentence_classification or config.corpus.file_format != "columns":
        raise InputError(
            "only a file in columns can hold both gold and predicted labels",
            file=path,
            remedy="a file of predictions beside that of gold labels",
        )
    gold = _GoldLabels(config)
    predicted: list[Sequence[str]] = []
    wanted: list[Sequence[str]] = []
    reader = read_both(config, path)
    for sentence in gold.watch(reader):
        if sentence.words and not sentence.boundary:
            assert reader.format is not None
            wanted.append(labels_of(sentence))
            predicted.append(_cells(sentence, reader.format.columns.index(PREDICTED)))
    return _score(config, LabelledPair(wanted, predicted, gold.scheme()))


def _score(config: Config, pair: LabelledPair) -> Score:
    if pair.scheme == PLAIN:
        return score_accuracy(pair.gold, pair.predicted)
    return score_spans(
        pair.gold,
        pair.predicted,
        policy=config.inference.score_policy,
        scheme=pair.scheme,
        delimiter=config.corpus.label_delimiter,
    )


def read_pair(config: Config, gold: str, predicted: str, *, oracle: bool = False) -> LabelledPair:
    """Read a gold file and a predicted one.

    The config says how the gold file is read; for the predicted one see `read_predicted`. With
    ``oracle``, which needs n-best output, the labeling of each sentence that is most like gold is
    taken; see `best_labeling`. Raises InputError where the words of the two differ, with the line.
    """
    labels = _GoldLabels(config)
    pairs = paired_sentences(
        labels.watch(open_corpus(config, gold)), read_predicted(config, predicted, labels.seen)
    )
    wanted: list[Sequence[str]] = []
    found: list[list[Sequence[str]]] = []
    for ours, theirs in pairs:
        wanted.append(labels_of(ours))
        found.append(_labelings(theirs) if oracle else [labels_of(theirs)])
    scheme = labels.scheme()
    keys, policy = config.corpus, config.inference.score_policy
    chosen = [
        best_labeling(ours, theirs, scheme, delimiter=keys.label_delimiter, policy=policy)
        if len(theirs) > 1
        else theirs[0]
        for ours, theirs in zip(wanted, found, strict=True)
    ]
    return LabelledPair(wanted, chosen, scheme)


class _GoldLabels:
    """What the labels of the gold file tell while it is read: ``seen``, and their scheme."""

    def __init__(self, config: Config) -> None:
        self.seen: set[str] = set()
        self._keys = config.corpus
        self._detector = SchemeDetector(self._keys.label_delimiter)
        self._detects = not self._keys.sentence_classification and self._keys.input_scheme == "auto"

    def watch(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """Hand sentences on."""
        for sentence in sentences:
            if sentence.labels is not None:
                self.seen.update(sentence.labels)
                if self._detects:
                    self._detector.feed(sentence.labels, file=sentence.file, line=sentence.line)
            yield sentence

    def scheme(self) -> str:
        """The scheme, once all sentences were handed on."""
        if self._keys.sentence_classification:
            return PLAIN
        return self._detector.scheme() if self._detects else scheme_name(self._keys.input_scheme)


def _cells(sentence: Sentence, column: int) -> list[str]:
    """The cells of a column; InputError for an empty one."""
    cells = [row[column] for row in sentence.rows or ()]
    if "" in cells:
        raise InputError(
            "the cell of the predicted label is empty",
            file=sentence.file,
            line=sentence.line_of(cells.index("")),
            remedy="the label that was predicted",
        )
    return cells


def _labelings(sentence: Sentence) -> list[Sequence[str]]:
    """The n best labelings of a sentence, best first; its rows hold them after the word."""
    if sentence.rows is None:
        raise InputError(
            "not n-best output: an oracle score chooses among several labelings",
            file=sentence.file,
            line=sentence.line,
            remedy="decode with nbest=10",
        )
    return list(zip(*(row[1:] for row in sentence.rows), strict=True))
