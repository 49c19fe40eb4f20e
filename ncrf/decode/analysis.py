"""The errors of a model on a labelled file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, pairwise

from ncrf.data.columns import Sentence
from ncrf.data.corpora import load_corpus, open_corpus, own_scheme
from ncrf.data.dataset import intern_corpus
from ncrf.data.schemes import PLAIN
from ncrf.data.vocabulary import convert_labels
from ncrf.decode.predict import Predictor
from ncrf.decode.prediction import Wanted
from ncrf.decode.thresholds import scores_by_threshold
from ncrf.errors import InputError
from ncrf.evaluate.analysis import TOP, Analysis, analyze
from ncrf.evaluate.markdown import code
from ncrf.evaluate.vocabulary_classes import VocabularyClasses, known_words

logger = logging.getLogger(__name__)


def analyze_file(
    predictor: Predictor,
    path: str,
    *,
    train: str | None = None,
    ignore_case: bool = False,
    top: int = TOP,
) -> Analysis:
    """Label a file and count what is wrong, in the scheme in which the model was trained.

    ``train`` names the training corpus, of which the model keeps the words but not their original
    forms; for it and ``ignore_case`` see `known_words`. ``top`` is how many of the most frequent
    errors are kept. Raises InputError for a file without labels, without sentences, or of other
    labels than the model's.
    """
    predictor = _in_own_scheme(predictor)
    config, vocabulary = predictor.config, predictor.vocabulary
    classification = config.corpus.sentence_classification
    given = _gold(predictor, path)
    pairs = zip(given, predictor.stream(given, Wanted(marginals=True)), strict=True)
    sentences, predicted = zip(*((s, p) for s, p in pairs if not s.boundary), strict=True)
    analysis = analyze(
        sentences,
        predicted,
        scheme=vocabulary.scheme.target if predictor.by_spans else PLAIN,
        delimiter=vocabulary.scheme.delimiter,
        policy=config.inference.score_policy,
        classification=classification,
        words=None if classification else _known(predictor, sentences, train, ignore_case),
        known_labels=vocabulary.labels.strings,
        top=top,
    )
    analysis = replace(analysis, thresholds=scores_by_threshold(predictor, given))
    if analysis.unknown_labels:
        labels = ", ".join(f"{label} ({n:,})" for label, n in analysis.unknown_labels.items())
        logger.warning("%s: labels that the model does not have: %s", path, labels)
    return analysis


def _in_own_scheme(predictor: Predictor) -> Predictor:
    """A predictor that writes the model's own labels, and looks at none that are given."""
    scheme = predictor.vocabulary.scheme
    if predictor.output_scheme == scheme.target and not predictor.config.decoding.forced_labels:
        return predictor
    # A target that is not the source was chosen by tag_scheme, or made of IOB1: BIO or BIOES.
    written = "input" if scheme.source == scheme.target else scheme.target.replace("IOB2", "BIO")
    return Predictor(
        predictor.labeler,
        predictor.vocabulary,
        predictor.config.replace(output_scheme=written, forced_labels=False),
        predictor.new_words,
        batch_size=predictor.batch_size,
    )


def _gold(predictor: Predictor, path: str) -> list[Sentence]:
    """The sentences of a file, their labels in the model's scheme, and document boundaries."""
    config, vocabulary = predictor.config, predictor.vocabulary
    reader = open_corpus(config, path, features=tuple(vocabulary.features))
    sentences = list(reader)
    corpus = intern_corpus(sentences, path, ())
    if not corpus.num_sentences:
        raise InputError("holds no sentence", file=path)
    column = convert_labels(
        corpus, own_scheme(config, corpus, vocabulary.scheme), keep_foreign=True
    )
    flat = [column.strings[i] for i in column.ids.tolist()]
    pieces = (flat[start:end] for start, end in pairwise(corpus.label_offsets.tolist()))
    return [s if s.boundary else replace(s, labels=next(pieces)) for s in sentences]


def _known(
    predictor: Predictor, sentences: Sequence[Sentence], train: str | None, ignore_case: bool
) -> VocabularyClasses:
    """Which words of the sentences the model knows, and where that is known from."""
    vocabulary, keys = predictor.vocabulary, predictor.config.words
    corpus = None
    if train is not None:
        corpus = load_corpus(predictor.config, train, features=tuple(vocabulary.features)).words
    words = chain.from_iterable(sentence.words for sentence in sentences)
    known = known_words(words, vocabulary, predictor.new_words, corpus, ignore_case=ignore_case)
    source = f"Training words: {code(train) if train else 'the alphabet of the model'}"
    source += ", whatever their case" * (ignore_case or vocabulary.normalization.case)
    source += ", digits turned to 0. " if vocabulary.normalization.digits else ". "
    vectors = code(str(keys.word_emb_dir))
    if predictor.new_words is not None:
        kept = ", kept in the model" * keys.vectors_in_model
        source += f"Vectors: {vectors}{kept}; found as written or in lower case."
        if vocabulary.normalization.digits and train is None:
            source += (
                " Words with digits stand for themselves, not for the most frequent form in "
                "training, which the model does not keep (--train FILE reads it)."
            )
    elif predictor.lacks_vectors:
        source += (
            f"Vectors: {vectors} is not at hand (--word_emb_dir FILE): IV cannot be told from "
            "OOEV, nor OOTV from OOBV."
        )
    else:
        source += "The model has no pretrained vectors: IV is not told from OOEV, OOTV from OOBV."
    return replace(known, source=source)
