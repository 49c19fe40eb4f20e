"""Predictions: sentences through the network in large batches, back in the order they came.

Sentences are taken from any iterable a window at a time, so memory does not grow with the
input; within a window, batches hold sentences of like length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ncrf.config import Config
from ncrf.crf import NoLabelingError, RowError
from ncrf.data.alphabet import UNKNOWN
from ncrf.data.batch import Batch, make_batch, pieces
from ncrf.data.columns import Sentence
from ncrf.data.corpora import marks_spans, own_scheme
from ncrf.data.dataset import Dataset, IntArray, InternedCorpus, intern_corpus, line_of_label
from ncrf.data.features import add_computed_features
from ncrf.data.label_tables import span_masks
from ncrf.data.partial import possible_labels
from ncrf.data.schemes import PLAIN, convert, scheme_name, spans
from ncrf.data.vocabulary import NewWordVectors, Vocabulary
from ncrf.decode.prediction import Labeling, PredictedSpan, Prediction, Wanted
from ncrf.decode.printed import PrintedMarginals
from ncrf.errors import InputError, NcrfError
from ncrf.evaluate import Score, SpanScorer, score_label_ids
from ncrf.model.inference_layers import Scores
from ncrf.model.labeler import Labeler

_WINDOW_TOKENS = 200_000
_WINDOW_SENTENCES = 20_000


class Predictor:
    """Runs a trained labeler over sentences."""

    def __init__(
        self,
        labeler: Labeler,
        vocabulary: Vocabulary,
        config: Config,
        new_words: NewWordVectors | None = None,
        *,
        batch_size: int | None = None,
    ) -> None:
        """``batch_size`` fixes the sentences a batch; None takes as many as fit."""
        self.labeler = labeler
        self.vocabulary = vocabulary
        self.config = config
        self.new_words = new_words
        self.unknown_words = 0  # tokens so far that have no row of their own
        self._batch_size = batch_size
        self.by_spans = marks_spans(config, vocabulary.scheme)
        self.output_scheme = _output_scheme(config, vocabulary)
        self._printed = PrintedMarginals(
            vocabulary.labels.strings, self.output_scheme, vocabulary.scheme.delimiter
        )
        self._labels = np.array(vocabulary.labels.strings, dtype=object)
        self._masks = span_masks(
            vocabulary.labels.strings, vocabulary.scheme.target, vocabulary.scheme.delimiter
        )

    @property
    def lacks_vectors(self) -> bool:
        """Whether the model was trained with a vector file that is not at hand any more."""
        words = self.config.words
        return bool(words.use_word_emb and words.word_emb_dir) and self.new_words is None

    def encode(self, corpus: InternedCorpus) -> Dataset:
        """A labelled corpus in the model's ids, its labels read in their own scheme."""
        scheme = own_scheme(self.config, corpus, self.vocabulary.scheme)
        return self.vocabulary.encode(corpus, self.new_words, scheme)

    def label_ids(self, dataset: Dataset) -> IntArray:
        """The best labels of an encoded, labelled corpus, as its own are laid out."""
        labels = np.zeros(int(dataset.label_offsets[-1]), np.int64)
        with torch.inference_mode():
            for batch in self._batches(dataset):
                scores = self._scores(batch)
                try:
                    best = self.labeler.inference.viterbi(scores)
                except RowError as error:
                    line = int(dataset.lines[batch.index[error.row]])
                    raise _row_failed(error, f"{dataset.file}:{line}", forced=False) from error
                first = dataset.label_offsets[batch.index][:, None]
                mask = scores.mask.cpu().numpy()
                place = first + np.arange(mask.shape[1])
                labels[place[mask]] = best.cpu().numpy()[mask]
        return labels

    def score(self, dataset: Dataset) -> Score:
        """Score the model on a labelled corpus, by spans or by accuracy."""
        assert dataset.labels is not None
        predicted = self.label_ids(dataset)
        scheme = self.vocabulary.scheme
        if not self.by_spans:
            return score_label_ids(
                dataset.label_strings, dataset.labels, predicted, sentences=dataset.num_sentences
            )
        scorer = SpanScorer(
            dataset.label_strings,
            policy=self.config.inference.score_policy,
            scheme=scheme.target,
            delimiter=scheme.delimiter,
        )
        return scorer.score(dataset.labels, predicted, dataset.offsets)

    def stream(self, sentences: Iterable[Sentence], wanted: Wanted) -> Iterator[Prediction]:
        """Predictions in the order of the sentences, with bounded memory."""
        for window in _windows(sentences, wanted.nbest or 1):
            yield from self.predict(window, wanted)

    def predict(self, sentences: Sequence[Sentence], wanted: Wanted) -> list[Prediction]:
        """Predictions for a list of sentences; document boundaries get label O."""
        dataset = self._encode(sentences)
        real = [i for i, sentence in enumerate(sentences) if not sentence.boundary]
        done: list[Prediction] = [_trivial(sentence, wanted) for sentence in sentences]
        with torch.inference_mode():
            forced = self.config.decoding.forced_labels
            for batch in self._batches(dataset, forced=forced, nbest=wanted.nbest or 1):
                rows = [real[i] for i in batch.index.tolist()]
                try:
                    found = self._predict_batch(batch, [sentences[row] for row in rows], wanted)
                except RowError as error:
                    place = _place(sentences, rows[error.row])
                    raise _row_failed(error, place, forced=forced) from error
                for row, prediction in zip(rows, found, strict=True):
                    done[row] = prediction
        return done

    def _encode(self, sentences: Sequence[Sentence]) -> Dataset:
        """The sentences in the model's ids; labels only where they are forced."""
        computed = [spec.name for spec in self.config.corpus.feature if spec.source]
        names = tuple(name for name in self.vocabulary.features if name not in computed)
        file = sentences[0].file if sentences else ""
        given: Iterable[Sentence] = sentences
        if not self.config.decoding.forced_labels:
            given = (replace(sentence, labels=None) for sentence in sentences)
        corpus = intern_corpus(given, file, names)
        add_computed_features(corpus, self.config.corpus.feature)
        # Labels that are given are the model's own: what is known in part cannot be converted.
        scheme = replace(self.vocabulary.scheme, source=self.vocabulary.scheme.target)
        dataset = self.vocabulary.encode(corpus, self.new_words, scheme)
        self.unknown_words += int((dataset.type_words[dataset.types] == UNKNOWN).sum())
        return dataset

    def _forced(self, dataset: Dataset) -> NDArray[np.bool_]:
        """What each label of the raw file allows, ``[labels, Y]``."""
        if dataset.labels is None:
            raise InputError(
                "forced_labels=True, but there is no label column",
                file=dataset.file,
                remedy="a label or ? for each word",
            )
        possible = possible_labels(dataset.label_strings, self.vocabulary.labels)
        known = np.asarray(possible.any(axis=1))
        strange = ~known[dataset.labels]
        if strange.any():
            place = int(strange.argmax())
            label = dataset.label_strings[dataset.labels[place]]
            raise InputError(
                f"forced_labels=True: {label} is no label of the model",
                file=dataset.file or None,
                line=line_of_label(dataset, place) if dataset.file else None,
                remedy=f"? or one of: {', '.join(self.vocabulary.labels.strings)}",
            )
        return possible

    def _batches(
        self, dataset: Dataset, *, forced: bool = False, nbest: int = 1
    ) -> Iterator[Batch]:
        """Batches that cover every sentence that has a word, longest first."""
        possible = self._forced(dataset) if forced and dataset.num_tokens else None
        self.labeler.eval()
        lengths = dataset.lengths
        rows = np.flatnonzero(lengths > 0)
        order = rows[np.argsort(-lengths[rows], kind="stable")]
        size = self._batch_size or max(1, len(order))
        # The memory of n-best grows with n: beyond 10 the batches shrink.
        tokens = self.config.decoding.decode_batch_tokens * 10 // max(10, nbest)
        for start in range(0, len(order), size):
            for part in pieces(order[start : start + size], lengths, tokens):
                batch = make_batch(
                    dataset,
                    part,
                    max_word_length=self.config.corpus.max_word_length,
                    possible=possible,
                )
                yield batch.to(self.labeler.device)

    def _scores(self, batch: Batch, *, forced: bool = False) -> Scores:
        allowed = batch.labels if forced else None
        return Scores(self.labeler(batch), self.labeler.label_mask(batch), allowed)

    def _predict_batch(
        self, batch: Batch, sentences: list[Sentence], wanted: Wanted
    ) -> list[Prediction]:
        inference = self.labeler.inference
        scores = self._scores(batch, forced=self.config.decoding.forced_labels)
        if wanted.nbest or wanted.probability:
            decoded = inference.decode(scores, max(1, wanted.nbest or 1))
            paths = decoded.labels
            probabilities = decoded.log_probabilities.double().exp().tolist()
            counts = decoded.count.tolist()
        else:
            paths = inference.viterbi(scores).unsqueeze(1)
            probabilities = [[float("nan")]] * len(sentences)
            counts = [1] * len(sentences)
        strings = self._labels[paths.cpu().numpy()].tolist()  # [B][N][L]
        found_spans = self._spans(scores, sentences, strings, wanted)
        lengths = [1 if self.labeler.classify else len(s.words) for s in sentences]
        written = [
            [self._output(path[:length]) for path in best[:count]]
            for best, length, count in zip(strings, lengths, counts, strict=True)
        ]
        marginals = (
            self._printed_marginals(scores, paths[:, 0], written) if wanted.marginals else None
        )
        predictions = []
        for b, sentence in enumerate(sentences):
            labelings = list(map(Labeling, written[b], probabilities[b]))
            predictions.append(
                Prediction(
                    tokens=sentence.words,
                    labels=labelings[0].labels,
                    probability=labelings[0].probability,
                    spans=found_spans[b],
                    marginals=None if marginals is None else marginals[b][: lengths[b]],
                    nbest=labelings if wanted.nbest else None,
                )
            )
        return predictions

    def _printed_marginals(
        self, scores: Scores, best: Tensor, written: list[list[list[str]]]
    ) -> list[list[float]]:
        """P of the label that is written at each word."""
        marginals = self.labeler.inference.marginals(scores)
        if self.output_scheme == self.vocabulary.scheme.target:
            chosen: list[list[float]] = marginals.gather(2, best.unsqueeze(2)).squeeze(2).tolist()
            return chosen
        found = []
        for row, labelings in enumerate(written):
            one = scores.row(row)
            pairs = self.labeler.inference.pair_marginals(one)[0].double().cpu()
            alone = marginals[row].double().cpu()
            found.append(self._printed.probability(alone, pairs, labelings[0]))
        return found

    def _spans(
        self,
        scores: Scores,
        sentences: list[Sentence],
        strings: list[list[list[str]]],
        wanted: Wanted,
    ) -> list[list[PredictedSpan]]:
        """The spans of each sentence's best labeling with their exact probabilities."""
        if not wanted.spans or self.vocabulary.scheme.target == PLAIN:
            return [[] for _ in sentences]
        delimiter = self.vocabulary.scheme.delimiter
        found = [
            (row, span)
            for row, sentence in enumerate(sentences)
            for span in spans(strings[row][0][: len(sentence.words)], delimiter)
        ]
        probabilities = self.labeler.inference.span_probabilities(
            scores,
            [(row, span.start, span.end, span.label) for row, span in found],
            self._masks,
        )
        result: list[list[PredictedSpan]] = [[] for _ in sentences]
        for (row, span), probability in zip(found, probabilities, strict=True):
            text = " ".join(sentences[row].words[span.start : span.end])
            result[row].append(PredictedSpan(span.label, span.start, span.end, text, probability))
        return result

    def _output(self, labels: list[str]) -> list[str]:
        """Labels of the model's scheme in the output scheme."""
        scheme = self.vocabulary.scheme
        if self.output_scheme == scheme.target:
            return labels
        return convert(labels, scheme.target, self.output_scheme, scheme.delimiter)


def _place(sentences: Sequence[Sentence], number: int) -> str:
    sentence = sentences[number]
    return f"{sentence.file}:{sentence.line}" if sentence.file else f"sentence {number}"


def _row_failed(error: RowError, place: str, *, forced: bool) -> NcrfError:
    """What the CRF says of a row: nothing agrees with what is allowed, or numbers are broken."""
    if isinstance(error, NoLabelingError):
        given = "given labels that the scheme allows, or " if forced else ""
        return InputError(f"{place}: no labeling is possible", remedy=f"{given}constraints=none")
    what = str(error).split(": ", 1)[-1]
    return NcrfError(
        f"{place}: {what} (the training diverged: a lower learning_rate or clip=5 may help)"
    )


def _output_scheme(config: Config, vocabulary: Vocabulary) -> str:
    """The scheme to write labels in.

    Without constraints, labelings that say the same spans become one when they are converted, and
    no probability would be that of what is written: labels stay in the model's scheme.
    """
    wanted, scheme = config.decoding.output_scheme, vocabulary.scheme
    if scheme.target == PLAIN:
        return PLAIN
    output = scheme.source if wanted == "input" else scheme_name(wanted)
    if config.inference.constraints != "none" or output == scheme.target:
        return output
    if wanted != "input":
        raise config.error(
            "output_scheme",
            f"output_scheme={wanted}: under constraints=none labels stay in {scheme.target}",
            "constraints=decode",
        )
    return scheme.target


def _trivial(sentence: Sentence, wanted: Wanted) -> Prediction:
    """The prediction for a document boundary or an empty sentence: certain."""
    labels = ["O"] * len(sentence.words)
    return Prediction(
        tokens=sentence.words,
        labels=labels,
        probability=1.0,
        spans=[],
        marginals=[1.0] * len(labels) if wanted.marginals else None,
        nbest=[Labeling(labels, 1.0)] if wanted.nbest else None,
    )


def _windows(sentences: Iterable[Sentence], nbest: int) -> Iterator[list[Sentence]]:
    """Lists of sentences that together stay within a bounded number of labels."""
    most = _WINDOW_TOKENS * 10 // max(10, nbest)
    window: list[Sentence] = []
    tokens = 0
    for sentence in sentences:
        window.append(sentence)
        tokens += len(sentence.words)
        if tokens >= most or len(window) >= _WINDOW_SENTENCES:
            yield window
            window, tokens = [], 0
    if window:
        yield window
