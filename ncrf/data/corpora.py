"""The corpora that a config names: read, their label scheme settled, described in the log."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from ncrf.config import Config
from ncrf.data.classification import read_classification
from ncrf.data.column_layout import described
from ncrf.data.columns import CorpusReader, Labels, read_columns
from ncrf.data.dataset import InternedCorpus, intern_corpus, line_of_label
from ncrf.data.features import add_computed_features
from ncrf.data.labels import belongs, mark, span_scheme
from ncrf.data.partial import is_partial, set_of
from ncrf.data.schemes import PLAIN, SchemeDetector, faults, scheme_name
from ncrf.data.vocabulary import LabelScheme, Vocabulary
from ncrf.errors import InputError

logger = logging.getLogger(__name__)

_MANY_LABELS = 1000


def open_corpus(
    config: Config, path: str, *, raw: bool = False, features: tuple[str, ...] = ()
) -> CorpusReader:
    """A reader of ``path`` as the config's file keys say; a raw file may lack labels.

    ``features`` names the feature columns that the model knows.
    """
    keys = config.corpus
    labels: Labels = "optional" if raw else "required"
    if keys.sentence_classification:
        return read_classification(path, labels=labels, features=features)
    return read_columns(
        path,
        columns=keys.columns,
        separator=keys.column_separator,
        comment_prefix=keys.comment_prefix,
        raw_format=keys.raw_format if raw else "columns",
        labels=labels,
        features=features,
        file_format=keys.file_format,
        label_column=keys.label_column,
    )


def load_corpus(
    config: Config, path: str, *, features: tuple[str, ...] | None = None
) -> InternedCorpus:
    """Read a labelled corpus as a whole; says its counts in the log.

    ``features`` are the model's feature columns; None takes those the file has.
    """
    computed = {spec.name for spec in config.corpus.feature if spec.source}
    read = None if features is None else tuple(name for name in features if name not in computed)
    reader = open_corpus(config, path, features=read or ())
    corpus = intern_corpus(reader, path, read)
    add_computed_features(corpus, config.corpus.feature)
    if reader.format is not None and config.corpus.file_format == "columns":
        corpus.columns = reader.format.columns
    if not corpus.num_sentences:
        raise InputError("holds no sentence", file=path)
    _log_counts(reader, corpus)
    return corpus


def _log_counts(reader: CorpusReader, corpus: InternedCorpus) -> None:
    boundaries = f" + {corpus.boundaries:,} -DOCSTART-" if corpus.boundaries else ""
    logger.info(
        "%s: %s sentences%s, %s tokens; columns %s",
        corpus.file,
        f"{corpus.num_sentences:,}",
        boundaries,
        f"{corpus.num_tokens:,}",
        described(reader.format) if reader.format else "none",
    )


def settle_scheme(config: Config, corpus: InternedCorpus) -> LabelScheme:
    """The scheme of a training corpus and the one that the model is trained in."""
    keys = config.corpus
    if keys.sentence_classification:
        return LabelScheme(PLAIN, PLAIN, keys.label_delimiter)
    if keys.input_scheme == "auto":
        source, how = _detect(config, corpus), "detected"
    else:
        source, how = scheme_name(keys.input_scheme), "declared"
        _refuse_strangers(config, corpus, source)
    target = trained_scheme(config, source)
    trained = "" if target == source else f", trained as {target}"
    logger.info("label scheme: %s (%s)%s", source, how, trained)
    return LabelScheme(source, target, keys.label_delimiter)


def _detect(config: Config, corpus: InternedCorpus) -> str:
    """The scheme of a training corpus by its labels.

    A label known in part says nothing of it, nor do the labels next to it; only where no sentence
    is without one do the rest of such sentences count.
    """
    mode = config.corpus.partial_labels
    detector = SchemeDetector(config.corpus.label_delimiter)
    places = list(zip(corpus.sentence_labels(), corpus.lines.tolist(), strict=True))
    whole = [(x, line) for x, line in places if not any(is_partial(y, mode) for y in x)]
    for labels, line in whole or places:
        known = [label for label in labels if whole or not is_partial(label, mode)]
        detector.feed(known, file=corpus.file, line=line)
    return detector.scheme()


def _refuse_strangers(config: Config, corpus: InternedCorpus, scheme: str) -> None:
    """InputError for a label that the declared scheme does not have."""
    assert corpus.labels is not None
    keys = config.corpus
    if scheme == PLAIN:
        return
    for label in corpus.labels.strings:
        read = mark(label, keys.label_delimiter)
        strange = not read.prefix or not belongs(read, span_scheme(scheme))
        if strange and not is_partial(label, keys.partial_labels):
            raise InputError(
                f"input_scheme={keys.input_scheme}, but {label} is none of its labels",
                file=corpus.file,
                remedy="input_scheme=auto",
            )


def own_scheme(config: Config, corpus: InternedCorpus, trained: LabelScheme) -> LabelScheme:
    """The scheme of a further corpus: that of the training corpus, unless another one fits better.

    Looked at where ``input_scheme=auto``; the log says so where the two differ.
    """
    if config.corpus.input_scheme != "auto" or trained.source == PLAIN:
        return trained

    def count(scheme: str) -> int:
        return sum(
            len(faults(labels, scheme, trained.delimiter)) for labels in corpus.sentence_labels()
        )

    detector = SchemeDetector(trained.delimiter)
    if not (wrong := count(trained.source)):
        return trained
    for labels in corpus.sentence_labels():
        detector.feed(labels, file=corpus.file)
    try:
        own = detector.scheme()
    except InputError:
        return trained  # no scheme at all: what is wrong in it counts as wrong
    if own in (PLAIN, trained.source) or count(own) >= wrong:
        return trained
    logger.warning(
        "%s: labels in %s, but those of the training corpus in %s: converted",
        corpus.file,
        own,
        trained.source,
    )
    return LabelScheme(own, trained.target, trained.delimiter)


def trained_scheme(config: Config, source: str) -> str:
    """The scheme that a model is trained in, given that of its corpus; never IOB1."""
    if source == PLAIN:
        return source
    wanted = config.corpus.tag_scheme
    if wanted == "keep":
        return scheme_name("BIO") if source == "IOB1" else source
    return scheme_name(wanted)


def refuse_illegal(config: Config, corpus: InternedCorpus, scheme: LabelScheme) -> None:
    """InputError, with its line, for the first label that the scheme forbids where it stands.

    ``constraints=all`` gives such a labeling no probability at all. Labels that are converted
    from another scheme are well-formed.
    """
    if scheme.source != scheme.target:
        return
    partial = config.corpus.partial_labels
    for labels, line in zip(corpus.sentence_labels(), corpus.lines.tolist(), strict=True):
        if any(is_partial(label, partial) for label in labels):
            continue  # the loss itself finds out whether any labeling agrees
        for fault in faults(labels, scheme.target, scheme.delimiter):
            raise InputError(
                f"constraints=all forbids {fault.reason}",
                file=corpus.file,
                line=line + fault.position,
                remedy=f"a well-formed labeling in {scheme.target}, or constraints=decode",
            )


def check_partial(config: Config, corpus: InternedCorpus, scheme: LabelScheme) -> bool:
    """Whether some labels of a training corpus stand for several; says how many in the log.

    Raises InputError where the labels would have to be converted to another scheme.
    """
    assert corpus.labels is not None
    mode = config.corpus.partial_labels
    partial = np.array([is_partial(label, mode) for label in corpus.labels.strings], np.bool_)
    count = int(partial[corpus.labels.ids].sum())
    if not count:
        return False
    if scheme.source != scheme.target:
        raise InputError(
            f"labels known in part cannot be converted from {scheme.source} to {scheme.target}",
            file=corpus.file,
            remedy=f"a corpus in {scheme.target}, and tag_scheme=keep",
        )
    _refuse_unknown_parts(corpus, partial)
    logger.info("%s: %s labels are known in part", corpus.file, f"{count:,}")
    return True


def _refuse_unknown_parts(corpus: InternedCorpus, partial: NDArray[np.bool_]) -> None:
    """InputError for a set of labels with one in it that no word of the corpus has alone."""
    assert corpus.labels is not None
    strings = corpus.labels.strings
    whole = {label for label, part in zip(strings, partial, strict=True) if not part}
    for number in np.flatnonzero(partial).tolist():
        for label in set_of(strings[number]) - whole:
            place = int((corpus.labels.ids == number).argmax())
            raise InputError(
                f"{strings[number]}: no word of the corpus has {label} alone",
                file=corpus.file,
                line=line_of_label(corpus, place),
                remedy="labels that are known elsewhere, or ?",
            )


def marks_spans(config: Config, scheme: LabelScheme) -> bool:
    """Whether the best epoch is chosen by span F1 (``seg``) rather than by accuracy."""
    spans = scheme.target != PLAIN
    if config.corpus.seg == "auto" or config.corpus.sentence_classification:
        return spans
    if config.corpus.seg and not spans and config.is_set("seg"):
        logger.warning("seg=True, but the labels mark no spans: accuracy is reported")
    return bool(config.corpus.seg) and spans


def log_alphabets(vocabulary: Vocabulary) -> None:
    """Say how large the alphabets are; so many labels that a column is mistaken are warned of."""
    if len(vocabulary.labels) == 1:
        logger.warning("every word has the label %s", vocabulary.labels.strings[0])
    if len(vocabulary.labels) > _MANY_LABELS:
        logger.warning(
            "%s different labels: is the right column the label (columns=)?",
            f"{len(vocabulary.labels):,}",
        )
    logger.info(
        "alphabets: %s words, %s characters, %s labels%s",
        f"{len(vocabulary.words):,}",
        f"{len(vocabulary.characters):,}",
        f"{len(vocabulary.labels):,}",
        "".join(f", [{name}] {len(a):,}" for name, a in vocabulary.features.items()),
    )
