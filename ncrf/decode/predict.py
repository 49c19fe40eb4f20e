"""Predictions: sentences through the network in large batches, back in the order they came.

Sentences are taken from any iterable a window at a time, so memory does not grow with the
input; within a window, batches hold sentences of like length.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ncrf.config import Config
from ncrf.crf import NoLabelingError, Posterior, RowError
from ncrf.data.columns import Sentence
from ncrf.data.corpora import marks_spans, own_scheme
from ncrf.data.dataset import Dataset, IntArray, InternedCorpus
from ncrf.data.label_tables import span_masks
from ncrf.data.schemes import PLAIN, scheme_name, spans
from ncrf.data.vocabulary import NewWordVectors, Vocabulary
from ncrf.decode.known_words import KnownWords
from ncrf.decode.minimum_risk import Candidate, MinimumRisk
from ncrf.decode.prediction import Labeling, PredictedSpan, Prediction, Wanted
from ncrf.decode.printed import PrintedMarginals
from ncrf.decode.window import WindowEncoder, data_set_windows, windows
from ncrf.decode.window_scores import WindowScores
from ncrf.decode.written_labels import WrittenLabels
from ncrf.errors import InputError, NcrfError
from ncrf.evaluate import Score, SpanScorer, score_label_ids
from ncrf.model.inference_layers import Scores
from ncrf.model.labeler import Labeler, reads_documents
from ncrf.model.lookup import Lookup


class Predictor:
    """Runs a trained labeler over sentences; may be used from several threads."""

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
        self.batch_size = batch_size
        self.unknown_words = 0  # tokens so far that have no row of their own
        self.by_spans = marks_spans(config, vocabulary.scheme)
        self.output_scheme = _output_scheme(config, vocabulary)
        labels, scheme = vocabulary.labels.strings, vocabulary.scheme
        self._printed = PrintedMarginals(labels, self.output_scheme, scheme.delimiter)
        self._written = WrittenLabels(labels, scheme.target, self.output_scheme, scheme.delimiter)
        self._labels = np.array(labels, dtype=object)
        self._masks = span_masks(labels, scheme.target, scheme.delimiter)
        self._minimum_risk = MinimumRisk.wanted(config, labeler.inference, labels, scheme)
        self._encoder = WindowEncoder(vocabulary, config)
        self._scores = WindowScores(labeler, config, batch_size)
        self._weights = list(labeler.parameters())
        self._lock = threading.Lock()
        self._known: tuple[list[int], Lookup, KnownWords] | None = None

    @property
    def lacks_vectors(self) -> bool:
        """Whether the model was trained with a vector file that is not at hand any more."""
        words = self.config.words
        return bool(words.use_word_emb and words.word_emb_dir) and self.new_words is None

    def encode(self, corpus: InternedCorpus) -> Dataset:
        """A labelled corpus in the model's ids, its labels read in their own scheme."""
        scheme = own_scheme(self.config, corpus, self.vocabulary.scheme)
        by_document = reads_documents(self.config)
        return self.vocabulary.encode(corpus, self.new_words, scheme, by_document=by_document)

    def label_ids(self, dataset: Dataset) -> IntArray:
        """The best labels of an encoded, labelled corpus, as its own are laid out."""
        labels = np.zeros(int(dataset.label_offsets[-1]), np.int64)
        self.labeler.eval()
        lookup = Lookup(self.labeler)
        with torch.inference_mode():
            for start, window in data_set_windows(dataset, lookup, self.config):
                for batch, scores in self._scores.of(lookup, window):
                    try:
                        best = self._best(scores)
                    except RowError as error:
                        line = int(dataset.lines[start + batch.index[error.row]])
                        place = f"{dataset.file}:{line}"
                        raise _row_failed(error, place, forced=False) from error
                    first = dataset.label_offsets[start + batch.index][:, None]
                    mask = scores.mask.cpu().numpy()
                    labels[(first + np.arange(mask.shape[1]))[mask]] = best.cpu().numpy()[mask]
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
        for window in self.windows(sentences, wanted):
            yield from self.predict(window, wanted)

    def windows(self, sentences: Iterable[Sentence], wanted: Wanted) -> Iterator[list[Sentence]]:
        """The sentences in lists for ``predict``, of bounded size."""
        by_document = reads_documents(self.config)
        return windows(sentences, wanted.nbest or 1, by_document=by_document)

    def predict(self, sentences: Sequence[Sentence], wanted: Wanted) -> list[Prediction]:
        """Predictions for a list of sentences; document boundaries get label O."""
        lookup, known = self._lookup()
        window, unknown = self._encoder.encode(sentences, known)
        with self._lock:
            self.unknown_words += unknown
        real = [i for i, sentence in enumerate(sentences) if not sentence.boundary]
        done: list[Prediction | None] = [None] * len(sentences)
        with torch.inference_mode():
            forced = self.config.decoding.forced_labels
            for batch, scores in self._scores.of(lookup, window, wanted.nbest or 1):
                rows = [real[i] for i in batch.index.tolist()]
                try:
                    found = self._predict_batch(scores, [sentences[row] for row in rows], wanted)
                except RowError as error:
                    place = _place(sentences, rows[error.row])
                    raise _row_failed(error, place, forced=forced) from error
                for row, prediction in zip(rows, found, strict=True):
                    done[row] = prediction
        return [
            _trivial(sentence, wanted) if prediction is None else prediction
            for sentence, prediction in zip(sentences, done, strict=True)
        ]

    def label_marginals(self, sentences: Sequence[Sentence]) -> list[NDArray[np.float64] | None]:
        """P(label | x) ``[L,Y]`` for the words of each sentence, by the model's labels.

        None for document boundaries and sentences without words.
        """
        lookup, known = self._lookup()
        window, _ = self._encoder.encode(sentences, known)
        real = [i for i, sentence in enumerate(sentences) if not sentence.boundary]
        found: list[NDArray[np.float64] | None] = [None] * len(sentences)
        with torch.inference_mode():
            for batch, scores in self._scores.of(lookup, window):
                posterior = self.labeler.inference.posterior(scores)
                marginals = posterior.marginals().double().cpu().numpy()
                lengths = scores.mask.sum(1).tolist()
                for i, row, length in zip(batch.index.tolist(), marginals, lengths, strict=True):
                    found[real[i]] = row[:length]
        return found

    def entities_above(
        self, sentences: Sequence[Sentence], threshold: float
    ) -> dict[Candidate, float]:
        """All entities with a probability above a threshold, with it; they may overlap.

        Each is the number of its sentence, its first word, the word after its last, and its type.
        """
        vocabulary, inference = self.vocabulary, self.labeler.inference
        labels = vocabulary.labels.strings
        finder = MinimumRisk(inference, labels, vocabulary.scheme, threshold)
        lookup, known = self._lookup()
        found: dict[Candidate, float] = {}
        first = 0  # of the window
        for part in self.windows(sentences, Wanted()):
            real = [i for i, sentence in enumerate(part, first) if not sentence.boundary]
            window, _ = self._encoder.encode(part, known)
            with torch.inference_mode():
                for batch, scores in self._scores.of(lookup, window):
                    above = finder.above(inference.posterior(scores))
                    for (row, start, end, label), probability in above.items():
                        found[real[batch.index[row]], start, end, label] = probability
            first += len(part)
        return found

    def _lookup(self) -> tuple[Lookup, KnownWords]:
        """The tables of the network as it is now; made anew when its weights have changed."""
        versions = [weights._version for weights in self._weights]
        with self._lock:
            if self._known is None or self._known[0] != versions:
                self.labeler.eval()
                lookup = Lookup(self.labeler)
                longest = self.config.corpus.max_word_length
                known = KnownWords(lookup, self.vocabulary, self.new_words, longest)
                self._known = (versions, lookup, known)
            return self._known[1], self._known[2]

    def _best(self, scores: Scores) -> Tensor:
        """The labeling of every sentence, ``[B,L]``."""
        posterior = self.labeler.inference.posterior(scores)
        if self._minimum_risk is None:
            return posterior.viterbi().labels
        return self._minimum_risk.labelings(posterior)[0]

    def _predict_batch(
        self, scores: Scores, sentences: list[Sentence], wanted: Wanted
    ) -> list[Prediction]:
        inference = self.labeler.inference
        with_spans = wanted.spans and self.vocabulary.scheme.target != PLAIN
        posterior = inference.posterior(scores)
        known: Mapping[Candidate, float] = {}
        counts = [1] * len(sentences)
        probabilities = [[float("nan")]] * len(sentences)
        if self._minimum_risk is not None and not wanted.nbest:
            best, known = self._minimum_risk.labelings(posterior)
            paths = best.unsqueeze(1)
            if wanted.probability:
                probabilities = posterior.log_prob(best).double().exp().unsqueeze(1).tolist()
        elif wanted.nbest or wanted.probability:
            alone = not (with_spans or wanted.marginals)
            decoded = posterior.nbest(max(1, wanted.nbest or 1), alone=alone)
            paths = decoded.labels
            probabilities = decoded.log_probabilities.double().exp().tolist()
            counts = decoded.counts.tolist()
        else:
            paths = posterior.viterbi().labels.unsqueeze(1)
        found_spans: list[list[PredictedSpan]] = [[] for _ in sentences]
        if with_spans:
            found_spans = self._spans(posterior, sentences, paths, known)
        lengths = [1 if self.labeler.classify else len(s.words) for s in sentences]
        written = self._written.write(paths.cpu().numpy(), lengths)
        if len(written[0]) > 1:
            written = [best[:count] for best, count in zip(written, counts, strict=True)]
        marginals: list[list[float]] | None = None
        if wanted.marginals:
            of_labels = posterior.marginals()
            marginals = self._printed_marginals(scores, of_labels, paths[:, 0], written)
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
        self, scores: Scores, marginals: Tensor, best: Tensor, written: list[list[list[str]]]
    ) -> list[list[float]]:
        """P of the label that is written at each word; ``marginals [B,L,Y]`` are the model's."""
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
        posterior: Posterior,
        sentences: list[Sentence],
        paths: Tensor,
        known: Mapping[Candidate, float],
    ) -> list[list[PredictedSpan]]:
        """The spans of each sentence's best labeling with their exact probabilities.

        Those that are ``known`` are not computed again.
        """
        delimiter = self.vocabulary.scheme.delimiter
        strings = self._labels[paths[:, 0].cpu().numpy()].tolist()
        found = [
            (row, span.start, span.end, span.label)
            for row, sentence in enumerate(sentences)
            for span in spans(strings[row][: len(sentence.words)], delimiter)
        ]
        new = [span for span in found if span not in known]
        computed = self.labeler.inference.span_probabilities(posterior, new, self._masks)
        probabilities = dict(known) | dict(zip(new, computed, strict=True))
        result: list[list[PredictedSpan]] = [[] for _ in sentences]
        for span in found:
            row, start, end, label = span
            text = " ".join(sentences[row].words[start:end])
            result[row].append(PredictedSpan(label, start, end, text, probabilities[span]))
        return result


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
