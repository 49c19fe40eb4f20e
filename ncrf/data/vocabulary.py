"""Everything that turns text into a model's numbers: its alphabets and its label scheme."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ncrf.data.alphabet import UNKNOWN, Alphabet
from ncrf.data.dataset import (
    Dataset,
    FloatArray,
    IntArray,
    InternedColumn,
    InternedCorpus,
    StringTable,
    TypeTable,
    offsets_of,
)
from ncrf.data.documents import same_words
from ncrf.data.normalization import Normalization
from ncrf.data.partial import is_partial
from ncrf.data.schemes import PLAIN, SCHEMES, convert, spans, split_label
from ncrf.data.template_features import TemplateFeatures
from ncrf.data.vectors import spellings
from ncrf.errors import InputError


class NewWordVectors(Protocol):
    """Where words that training did not see get their vectors from."""

    def rows(self, candidates: Sequence[Sequence[str]]) -> tuple[FloatArray, np.ndarray]:
        """Rows ``[n,D]`` for n words, each given by its spellings in order of preference.

        The second result ``[n]`` says which words were found; the rows of others are zero.
        """
        ...

    def stored(self) -> bytes:
        """All vectors as the content of a file of a model folder, which then needs no other."""
        ...


@dataclass(frozen=True)
class LabelScheme:
    """How labels are written: in the corpus (``source``), in the model (``target``).

    Both are scheme names as in ``data/schemes``; ``delimiter`` stands between prefix and type.
    """

    source: str
    target: str
    delimiter: str = "-"

    def is_sound(self) -> bool:
        """Whether a corpus in ``source`` can be that of a model in ``target``."""
        names, trained = {*SCHEMES, PLAIN}, {*SCHEMES, PLAIN} - {"IOB1"}
        if self.source not in names or self.target not in trained:
            return False
        plain = (self.source == PLAIN) == (self.target == PLAIN)
        return plain and isinstance(self.delimiter, str) and bool(self.delimiter)


@dataclass(frozen=True)
class Vocabulary:
    """The alphabets of one model; they come from its training corpus alone.

    ``corpus`` says how large that was: ``sentences``, ``tokens`` and, where labels mark spans,
    ``entities``; it is empty for a model that was written without. ``templates`` is None for a
    model without feature templates; they are stored apart from the rest.
    """

    words: Alphabet
    characters: Alphabet
    features: dict[str, Alphabet]
    labels: Alphabet
    scheme: LabelScheme
    normalization: Normalization
    corpus: dict[str, int] = field(default_factory=dict)
    templates: TemplateFeatures | None = None

    @classmethod
    def build(
        cls,
        corpus: InternedCorpus,
        scheme: LabelScheme,
        *,
        normalization: Normalization,
        partial_labels: str = "none",
    ) -> Vocabulary:
        """Collect the alphabets of a training corpus (its labels in ``scheme.source``).

        Labels that stand for several, as ``partial_labels`` says, are left out. Raises InputError,
        with its line, for a label that cannot be converted to ``scheme.target``.
        """
        words: Counter[str] = Counter()
        characters: Counter[str] = Counter()
        for word, count in zip(corpus.words.strings, corpus.words.counts().tolist(), strict=True):
            spelling = normalization.spelling(word)
            words[normalization.key_of_spelling(spelling)] += count
            for character in spelling:
                characters[character] += count
        labels = _counter(convert_labels(corpus, scheme))
        for label in [label for label in labels if is_partial(label, partial_labels)]:
            del labels[label]
        if not labels:
            raise InputError(
                "no word has a label that is known",
                file=corpus.file,
                remedy="labels, or partial_labels=none if ? is one",
            )
        return cls(
            words=Alphabet.build(words),
            characters=Alphabet.build(characters),
            features={
                name: Alphabet.build(_counter(column)) for name, column in corpus.features.items()
            },
            labels=Alphabet.build(labels, special=()),
            scheme=scheme,
            normalization=normalization,
            corpus=corpus_counts(corpus, scheme),
        )

    def encode(
        self,
        corpus: InternedCorpus,
        new_words: NewWordVectors | None = None,
        scheme: LabelScheme | None = None,
        *,
        by_document: bool = False,
    ) -> Dataset:
        """The corpus in this model's ids; ``scheme`` where it is not that of the training corpus.

        ``new_words`` gives vectors to words that are not in the word alphabet; without it they
        are unknown. Labels that are not in the label alphabet get ids of their own beyond it.
        ``by_document`` finds the equal words of each document.
        """
        labels, label_strings = None, tuple(self.labels.strings)
        if corpus.labels is not None:
            labels, label_strings = self._label_ids(
                convert_labels(corpus, scheme or self.scheme, keep_foreign=True)
            )
        return Dataset(
            file=corpus.file,
            offsets=corpus.offsets,
            lines=corpus.lines,
            types=corpus.words.ids,
            features=self.encode_features(corpus),
            labels=labels,
            label_offsets=corpus.label_offsets,
            type_table=self.encode_types(corpus.words.strings, new_words),
            label_strings=label_strings,
            documents=corpus.documents,
            same_words=same_words(corpus) if by_document else None,
            attributes=None if self.templates is None else self.templates.encode(corpus),
        )

    def encode_types(
        self, words: Sequence[str], new_words: NewWordVectors | None = None
    ) -> TypeTable:
        """Distinct words in this model's ids; ``new_words`` as in ``encode``."""
        spelled = list(map(self.normalization.spelling, words))
        keys = list(map(self.normalization.key_of_spelling, spelled))
        type_words = self.words.ids(keys)
        new_vectors = np.zeros((0, 0), np.float32)
        if new_words is not None:
            type_words, new_vectors = self._new_rows(words, keys, type_words, new_words)
        return TypeTable(
            words=type_words,
            characters=self.characters.ids(list(chain.from_iterable(spelled))),
            offsets=offsets_of(np.array(list(map(len, spelled)), np.int64)),
            num_words=len(self.words),
            new_vectors=new_vectors,
        )

    def _new_rows(
        self,
        words: Sequence[str],
        keys: list[str],
        type_words: IntArray,
        new_words: NewWordVectors,
    ) -> tuple[IntArray, FloatArray]:
        """Give types that the alphabet lacks ids beyond it, and their vectors ``[E,D]``."""
        unseen = np.flatnonzero(type_words == UNKNOWN)
        candidates = [spellings(keys[i], words[i]) for i in unseen.tolist()]
        rows, found = new_words.rows(candidates)
        type_words = type_words.copy()
        type_words[unseen[found]] = len(self.words) + np.arange(int(found.sum()))
        return type_words, rows[found]

    def _label_ids(self, labels: InternedColumn) -> tuple[IntArray, tuple[str, ...]]:
        table = StringTable({label: i for i, label in enumerate(self.labels.strings)})
        ids = np.array([table[label] for label in labels.strings], np.int64)
        return ids[labels.ids], tuple(table.strings())

    def encode_features(self, corpus: InternedCorpus) -> IntArray:
        """Feature value ids ``[F,T]`` in the order of the model's feature columns."""
        ids = np.zeros((len(self.features), corpus.num_tokens), np.int64)
        for row, (name, alphabet) in zip(ids, self.features.items(), strict=True):
            column = corpus.features[name]
            row[:] = alphabet.ids(column.strings)[column.ids]
        return ids

    def to_json(self) -> dict[str, Any]:
        """The vocabulary as plain JSON values."""
        return {
            "words": self.words.to_json(),
            "characters": self.characters.to_json(),
            "features": {name: alphabet.to_json() for name, alphabet in self.features.items()},
            "labels": self.labels.to_json(),
            "scheme": vars(self.scheme),
            "number_normalized": self.normalization.digits,
            "lowercase": self.normalization.case,
            "corpus": self.corpus,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any], file: Path | None = None) -> Vocabulary:
        """The vocabulary that ``to_json`` wrote; InputError names ``file`` where it is damaged."""
        labels = Alphabet.from_json(value["labels"], file)
        corpus = dict(value.get("corpus", {}))  # absent in older folders
        read = cls(
            words=Alphabet.from_json(value["words"], file),
            characters=Alphabet.from_json(value["characters"], file),
            features={
                name: Alphabet.from_json(alphabet, file)
                for name, alphabet in value["features"].items()
            },
            labels=labels,
            scheme=LabelScheme(**value["scheme"]),
            normalization=Normalization(
                value["number_normalized"],
                value.get("lowercase", False),  # absent in older folders
            ),
            corpus=corpus,
        )
        problem = read._problem()
        if problem is not None:
            raise InputError(
                problem, file=file, remedy="the file is damaged; train the model again"
            )
        return read

    def _problem(self) -> str | None:
        """What no vocabulary that was built from a corpus has; None if there is nothing."""
        labels = self.labels.strings
        if not labels or self.labels.special:
            return "holds no labels"
        if not all(labels) or "\n" in "".join(labels):
            return "holds a label that no line of a corpus can hold"
        inputs = (self.words, self.characters, *self.features.values())
        if not all(alphabet.special for alphabet in inputs):
            return "has an alphabet without padding and unknown"
        try:
            "".join(chain(*(a.strings for a in (*inputs, self.labels)))).encode("utf-8")
        except UnicodeEncodeError:
            return "holds a string that no text can hold"
        settings = (self.normalization.digits, self.normalization.case)
        if not self.scheme.is_sound() or not all(type(setting) is bool for setting in settings):
            return "holds no label scheme"
        if not all(type(count) is int for count in self.corpus.values()):
            return "holds counts that are no numbers"
        return None


def corpus_counts(corpus: InternedCorpus, scheme: LabelScheme) -> dict[str, int]:
    """Sentences, tokens and, where labels mark spans, entities of a labelled corpus."""
    counts = {"sentences": corpus.num_sentences, "tokens": corpus.num_tokens}
    if scheme.source != PLAIN:
        labels = corpus.sentence_labels()
        counts["entities"] = sum(len(spans(sentence, scheme.delimiter)) for sentence in labels)
    return counts


def convert_labels(
    corpus: InternedCorpus, scheme: LabelScheme, *, keep_foreign: bool = False
) -> InternedColumn:
    """The corpus's labels in the scheme of the model.

    A foreign label, one without a prefix of any scheme, cannot be converted: InputError names its
    line. With ``keep_foreign`` it stays as it stands, outside any span.
    """
    assert corpus.labels is not None
    if scheme.source == scheme.target:
        return corpus.labels
    foreign = {s for s in corpus.labels.strings if not split_label(s, scheme.delimiter)[0]}
    if foreign and not keep_foreign:
        raise _foreign_label(corpus, foreign, scheme)
    table = StringTable()
    ids: list[int] = []
    for labels in corpus.sentence_labels():
        known = ["O" if label in foreign else label for label in labels] if foreign else labels
        converted = convert(known, scheme.source, scheme.target, scheme.delimiter)
        if foreign:
            pairs = zip(labels, converted, strict=True)
            converted = [old if old in foreign else new for old, new in pairs]
        ids.extend(map(table.__getitem__, converted))
    return InternedColumn(np.array(ids, np.int64), table.strings())


def _foreign_label(corpus: InternedCorpus, foreign: set[str], scheme: LabelScheme) -> InputError:
    """What to say of the first label that has no prefix of any scheme."""
    label, line = next(
        (label, line + position)
        for labels, line in zip(corpus.sentence_labels(), corpus.lines.tolist(), strict=True)
        for position, label in enumerate(labels)
        if label in foreign
    )
    return InputError(
        f"label {label!r} cannot be converted to {scheme.target}: "
        f"it has no prefix of {scheme.source}",
        file=corpus.file,
        line=line,
        remedy=f"labels such as B{scheme.delimiter}PER, or input_scheme=plain",
    )


def _counter(column: InternedColumn) -> Counter[str]:
    return Counter(dict(zip(column.strings, column.counts().tolist(), strict=True)))
