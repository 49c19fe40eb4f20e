"""A corpus as flat integer arrays: read once, sliced into batches for ever after.

Strings are turned into integers in one streaming pass (``intern_corpus``), so a corpus costs a
few integers a token and every distinct string once. A ``Dataset`` is the same corpus in the
ids of a model's alphabets; its distinct words (*types*) carry the word id and the characters,
so the character layer can run once per type.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ncrf.data.columns import Sentence
from ncrf.errors import InputError

if TYPE_CHECKING:
    from ncrf.data.attributes import TokenAttributes

#: What a sentence holds beside its features, where it is given in Python.
RESERVED_NAMES = ("words", "labels")

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]


class StringTable(dict[str, int]):
    """Distinct strings numbered in order of first appearance: ``table[string]`` adds it."""

    def __missing__(self, string: str) -> int:
        """Number a string that is met for the first time."""
        number = self[string] = len(self)
        return number

    def strings(self) -> list[str]:
        """The strings, in the order of their numbers."""
        return list(self)


@dataclass
class InternedColumn:
    """One column of a corpus: ``ids [T]`` (one a token) into the distinct ``strings``."""

    ids: IntArray
    strings: list[str]

    def counts(self) -> IntArray:
        """How many tokens carry each of the distinct strings, ``[len(strings)]``."""
        return np.bincount(self.ids, minlength=len(self.strings))


@dataclass
class InternedCorpus:
    """A corpus whose strings are numbered, independent of any model.

    ``offsets [S+1]``: sentence s holds tokens offsets[s] to offsets[s+1]; ``lines [S]``: the
    line of its first word in ``file``. ``labels`` is None when the corpus has no label column;
    the labels of sentence s are label_offsets[s] to label_offsets[s+1] (as many as it has words,
    or one in sentence classification).
    ``boundaries`` counts the -DOCSTART- sentences, which are left out; ``documents [S]`` counts
    them up to a sentence, less one (-1: before the first, in no document). ``columns`` are those of
    the file, as the key of that name writes them; empty where there was none, or in CoNLL-U.
    """

    file: str
    offsets: IntArray
    lines: IntArray
    words: InternedColumn
    features: dict[str, InternedColumn]
    labels: InternedColumn | None
    label_offsets: IntArray
    documents: IntArray
    boundaries: int = 0
    columns: tuple[str, ...] = ()

    @property
    def num_sentences(self) -> int:
        """Sentences in the corpus, document boundaries not counted."""
        return len(self.lines)

    @property
    def num_tokens(self) -> int:
        """Tokens in the corpus."""
        return len(self.words.ids)

    def sentence_labels(self) -> Iterator[list[str]]:
        """The labels of each sentence, as strings."""
        if self.labels is None:
            raise InputError("the corpus has no labels", file=self.file)
        flat = np.array(self.labels.strings, dtype=object)[self.labels.ids].tolist()
        for start, end in pairwise(self.label_offsets.tolist()):
            yield flat[start:end]


@dataclass
class _Building:
    """The growing columns of ``intern_corpus``."""

    words: StringTable = field(default_factory=StringTable)
    word_ids: array[int] = field(default_factory=lambda: array("q"))
    labels: StringTable = field(default_factory=StringTable)
    label_ids: array[int] = field(default_factory=lambda: array("q"))
    label_counts: array[int] = field(default_factory=lambda: array("q"))
    features: dict[str, tuple[StringTable, array[int]]] = field(default_factory=dict)
    lengths: array[int] = field(default_factory=lambda: array("q"))
    lines: array[int] = field(default_factory=lambda: array("q"))
    documents: array[int] = field(default_factory=lambda: array("q"))

    def add(self, sentence: Sentence, feature_names: tuple[str, ...], labels: bool) -> None:
        self.word_ids.extend(map(self.words.__getitem__, sentence.words))
        if labels and sentence.labels is not None:
            self.label_ids.extend(map(self.labels.__getitem__, sentence.labels))
            self.label_counts.append(len(sentence.labels))
        for name in feature_names:
            values = sentence.features.get(name)
            if values is None:
                raise InputError(
                    f"the feature column [{name}] is missing",
                    file=sentence.file,
                    line=sentence.line,
                    remedy="the model was trained with it; name it in columns= or in the cells",
                )
            table, ids = self.features.setdefault(name, (StringTable(), array("q")))
            ids.extend(map(table.__getitem__, values))
        self.lengths.append(len(sentence.words))
        self.lines.append(sentence.line)


def intern_corpus(
    sentences: Iterable[Sentence],
    file: str,
    feature_names: tuple[str, ...] | None = None,
    *,
    labels: bool = True,
) -> InternedCorpus:
    """Number the strings of a corpus in one pass; -DOCSTART- sentences are only counted.

    Without ``labels`` those of the sentences are not looked at.

    ``feature_names`` names the feature columns to keep (an InputError names the first sentence
    that lacks one); None takes every column of the first sentence, and raises InputError for a
    name that a config or a caller of the Tagger could not give.
    """
    building = _Building()
    for name in feature_names or ():
        building.features[name] = (StringTable(), array("q"))
    boundaries = 0
    for sentence in sentences:
        if sentence.boundary:
            boundaries += 1
            continue
        building.documents.append(boundaries - 1)
        if feature_names is None:
            feature_names = tuple(sentence.features)
            _check_feature_names(feature_names, sentence)
        building.add(sentence, feature_names, labels)
    labelled = labels and len(building.label_counts) == len(building.lengths)
    return InternedCorpus(
        file=file,
        offsets=offsets_of(_to_numpy(building.lengths)),
        lines=_to_numpy(building.lines),
        words=InternedColumn(_to_numpy(building.word_ids), building.words.strings()),
        features={
            name: InternedColumn(_to_numpy(ids), table.strings())
            for name, (table, ids) in building.features.items()
        },
        labels=InternedColumn(_to_numpy(building.label_ids), building.labels.strings())
        if labelled
        else None,
        label_offsets=offsets_of(_to_numpy(building.label_counts)),
        documents=_to_numpy(building.documents),
        boundaries=boundaries,
    )


def _check_feature_names(names: tuple[str, ...], sentence: Sentence) -> None:
    """InputError for a new feature that could be named neither in a config nor in Python."""
    for name in names:
        if name in RESERVED_NAMES:
            what, remedy = f"a feature may not be called {name}", "another name for the column"
        elif not name or name != name.strip() or "[" in name or "]" in name:
            what = f"{name!r} is not the name of a feature"
            remedy = "no brackets in it, and no spaces at its ends"
        else:
            continue
        raise InputError(what, file=sentence.file, line=sentence.line, remedy=remedy)


def offsets_of(lengths: IntArray) -> IntArray:
    """Where each of the pieces laid end to end begins, and where the last one ends, ``[n+1]``."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def line_of_label(corpus: InternedCorpus | Dataset, place: int) -> int:
    """The line of the label at a place in a corpus's flat labels (comments between not counted)."""
    sentence = int(np.searchsorted(corpus.label_offsets, place, "right")) - 1
    return int(corpus.lines[sentence]) + place - int(corpus.label_offsets[sentence])


def _to_numpy(values: array[int]) -> IntArray:
    return np.frombuffer(values, dtype=np.int64) if len(values) else np.zeros(0, np.int64)


@dataclass(frozen=True)
class TypeTable:
    """Distinct words (*types*) in the ids of one model; K types, C characters of all of them.

    ``words [K]`` word ids; ``characters [C]`` with ``offsets [K+1]``. A word id of ``num_words``
    (the size of the word alphabet) or above stands for a word that training did not see but the
    vector file has: its row is ``new_vectors[id - num_words]``.
    """

    words: IntArray
    characters: IntArray
    offsets: IntArray
    num_words: int
    new_vectors: FloatArray


@dataclass(frozen=True)
class Dataset:
    """A corpus in the ids of one model's alphabets.

    S sentences, T tokens, K types (distinct words), C characters of all types, F features:
    ``offsets [S+1]``, ``lines [S]``, ``types [T]`` (each token's row in the type table),
    ``features [F,T]``, ``labels [T]`` or None with ``label_offsets [S+1]`` (one label a token, or
    one a sentence in classification). ``type_table`` says what the types are.

    A label id of ``len(model labels)`` or above is a label that training did not see;
    ``label_strings`` names all of them, the model's first. ``attributes`` are those of feature
    templates, None for a model without.

    ``documents [S]`` numbers the document of each sentence (-1: none), and ``same_words [T]`` the
    group of equal words of a document that a token is of (-1: none); None for a model that does not
    look at documents.
    """

    file: str
    offsets: IntArray
    lines: IntArray
    types: IntArray
    features: IntArray
    labels: IntArray | None
    label_offsets: IntArray
    type_table: TypeTable
    label_strings: tuple[str, ...]
    documents: IntArray
    same_words: IntArray | None = None
    attributes: TokenAttributes | None = None

    @property
    def lengths(self) -> IntArray:
        """Words in each sentence, ``[S]``."""
        return np.diff(self.offsets)

    @property
    def num_sentences(self) -> int:
        """Sentences in the corpus."""
        return len(self.lines)

    @property
    def num_tokens(self) -> int:
        """Tokens in the corpus."""
        return len(self.types)
