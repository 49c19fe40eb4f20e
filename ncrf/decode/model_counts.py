"""The counts of a model's own labels for a gold file, as training scores its test corpus."""

from __future__ import annotations

import logging
from pathlib import Path

from ncrf.config import Config
from ncrf.data import corpora
from ncrf.decode.load import load_predictor
from ncrf.evaluate.sentence_counts import SentenceCounts, count_labels, count_spans
from ncrf.evaluate.spans import SpanReader

logger = logging.getLogger(__name__)


def count_model(model_dir: Path, gold: str, decode: Config) -> SentenceCounts:
    """Label a gold file with a model and count, sentence by sentence.

    Raises InputError for a model or a file that cannot be used.
    """
    predictor = load_predictor(model_dir, decode)
    if predictor.lacks_vectors:
        logger.warning(
            "%s: the vectors %s are not at hand, its score is lower than it could be",
            *(model_dir, predictor.config.words.word_emb_dir),
        )
    features = tuple(predictor.vocabulary.features)
    corpus = corpora.load_corpus(predictor.config, gold, features=features)
    dataset = predictor.encode(corpus)
    assert dataset.labels is not None
    predicted = predictor.label_ids(dataset)
    if not predictor.by_spans:
        return count_labels(dataset.labels, predicted, dataset.label_offsets)
    scheme = predictor.vocabulary.scheme
    reader = SpanReader(
        dataset.label_strings,
        policy=decode.inference.score_policy,
        scheme=scheme.target,
        delimiter=scheme.delimiter,
    )
    return count_spans(reader, dataset.labels, predicted, dataset.offsets)
