"""Sentences that are decoded together: their numbers, and batches of like length of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ncrf.config import Config
from ncrf.data.attributes import TokenAttributes
from ncrf.data.batch import RowBatch, make_row_batch, pieces
from ncrf.data.columns import Sentence
from ncrf.data.dataset import (
    Dataset,
    IntArray,
    InternedCorpus,
    intern_corpus,
    line_of_label,
)
from ncrf.data.documents import LONGEST, last_whole, same_words
from ncrf.data.features import add_computed_features
from ncrf.data.partial import possible_labels
from ncrf.data.vocabulary import Vocabulary
from ncrf.decode.known_words import KnownWords, fill_rows
from ncrf.errors import InputError
from ncrf.model.labeler import reads_documents
from ncrf.model.lookup import Lookup

_WINDOW_TOKENS = 20_000
_WINDOW_SENTENCES = 5_000
_DATA_SET_TOKENS = 200_000


@dataclass(frozen=True)
class Window:
    """S sentences of T words for the network.

    ``offsets [S+1]``; ``table [*,width]`` and ``rows [T]`` in it; ``features [F,T]``;
    ``same_words [T]`` the groups of equal words of a document (-1: none), None for a model that
    does not look at documents; ``allowed`` None, or the labels that each word may get, ``[T,Y]``,
    and the offsets of the sentences in it; ``attributes`` of the words by feature templates, None
    for a model without.
    """

    offsets: IntArray
    table: Tensor
    rows: IntArray
    features: IntArray
    same_words: IntArray | None = None
    allowed: tuple[NDArray[np.bool_], IntArray] | None = None
    attributes: TokenAttributes | None = None

    def batches(self, batch_size: int | None, max_tokens: int) -> Iterator[RowBatch]:
        """Batches that cover every sentence that has a word, longest first."""
        lengths = np.diff(self.offsets)
        order = np.flatnonzero(lengths)
        order = order[np.argsort(-lengths[order], kind="stable")]
        size = batch_size or max(1, len(order))
        for start in range(0, len(order), size):
            for part in pieces(order[start : start + size], lengths, max_tokens):
                yield make_row_batch(
                    self.offsets, part, self.rows, self.features, self.allowed, self.attributes
                )


class WindowEncoder:
    """Turns sentences into windows of one model's numbers."""

    def __init__(self, vocabulary: Vocabulary, config: Config) -> None:
        self._vocabulary = vocabulary
        self._config = config
        computed = {spec.name for spec in config.corpus.feature if spec.source}
        self._read = tuple(name for name in vocabulary.features if name not in computed)

    def encode(self, sentences: Sequence[Sentence], known: KnownWords) -> tuple[Window, int]:
        """The window of all sentences but document boundaries, and how many words are unknown.

        Raises InputError for a feature that is missing and, under ``forced_labels``, for labels.
        """
        file = sentences[0].file if sentences else ""
        forced = self._config.decoding.forced_labels
        corpus = intern_corpus(sentences, file, self._read, labels=forced)
        add_computed_features(corpus, self._config.corpus.feature)
        found = known.find(corpus.words.strings)
        templates = self._vocabulary.templates
        window = Window(
            offsets=corpus.offsets,
            table=found.table,
            rows=found.rows[corpus.words.ids],
            features=self._vocabulary.encode_features(corpus),
            same_words=same_words(corpus) if reads_documents(self._config) else None,
            allowed=(self._allowed(corpus), corpus.label_offsets)
            if forced and corpus.num_tokens
            else None,
            attributes=templates.encode(corpus) if templates is not None else None,
        )
        return window, int(found.unknown[corpus.words.ids].sum())

    def _allowed(self, corpus: InternedCorpus) -> NDArray[np.bool_]:
        """The labels that each word may get, ``[T,Y]`` (``[S,Y]`` in classification)."""
        if corpus.labels is None:
            raise InputError(
                "forced_labels=True, but there is no label column",
                file=corpus.file,
                remedy="a label or ? for each word",
            )
        # Labels that are given are the model's own: what is known in part cannot be converted.
        scheme = self._vocabulary.scheme
        dataset = self._vocabulary.encode(corpus, None, replace(scheme, source=scheme.target))
        assert dataset.labels is not None
        possible = possible_labels(dataset.label_strings, self._vocabulary.labels)
        known = np.asarray(possible.any(axis=1))
        strange = ~known[dataset.labels]
        if strange.any():
            raise self._strange(dataset, int(strange.argmax()))
        return np.asarray(possible[dataset.labels])

    def _strange(self, dataset: Dataset, place: int) -> InputError:
        assert dataset.labels is not None
        label = dataset.label_strings[dataset.labels[place]]
        return InputError(
            f"forced_labels=True: {label} is no label of the model",
            file=dataset.file or None,
            line=line_of_label(dataset, place) if dataset.file else None,
            remedy=f"? or one of: {', '.join(self._vocabulary.labels.strings)}",
        )


def data_set_windows(
    dataset: Dataset, lookup: Lookup, config: Config
) -> Iterator[tuple[int, Window]]:
    """A data set in windows, each with the number of its first sentence."""
    start = 0
    while start < dataset.num_sentences:
        first = int(dataset.offsets[start])
        end = int(np.searchsorted(dataset.offsets, first + _DATA_SET_TOKENS, "right")) - 1
        end = min(max(end, start + 1), dataset.num_sentences)
        if dataset.same_words is not None:
            end = last_whole(dataset.documents, start, end)
        tokens = slice(first, int(dataset.offsets[end]))
        types, rows = np.unique(dataset.types[tokens], return_inverse=True)
        table = torch.empty(len(types), lookup.width, device=lookup.device)
        fill_rows(lookup, dataset.type_table, types, table, config.corpus.max_word_length)
        attributes, same_words = dataset.attributes, dataset.same_words
        yield (
            start,
            Window(
                offsets=dataset.offsets[start : end + 1] - first,
                table=table,
                rows=rows,
                features=dataset.features[:, tokens],
                same_words=None if same_words is None else same_words[tokens],
                attributes=None if attributes is None else attributes.part(start, end),
            ),
        )
        start = end


def windows(
    sentences: Iterable[Sentence], nbest: int, *, by_document: bool = False
) -> Iterator[list[Sentence]]:
    """Lists of sentences that together stay within a bounded number of labels.

    With ``by_document`` no list ends among the words of a document that ``same_words`` looks at.
    """
    most = _WINDOW_TOKENS * 10 // max(10, nbest)
    window: list[Sentence] = []
    tokens = 0
    together = 0  # words of the document that are still to come into the same list
    for sentence in sentences:
        if by_document and sentence.boundary:
            if _full(window, tokens, most):
                yield window
                window, tokens = [], 0
            together = LONGEST
        window.append(sentence)
        if not sentence.boundary:
            tokens += len(sentence.words)
            together -= max(1, len(sentence.words))
        if together <= 0 and _full(window, tokens, most):
            yield window
            window, tokens = [], 0
    if window:
        yield window


def _full(window: Sequence[Sentence], tokens: int, most: int) -> bool:
    return tokens >= most or len(window) >= _WINDOW_SENTENCES
