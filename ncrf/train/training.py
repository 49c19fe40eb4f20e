"""One training from start to end: corpora, alphabets, vectors, network, epochs, test score."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from ncrf.config import Config, all_keys, log_idle_keys
from ncrf.config.template_keys import WHOLE_CORPUS
from ncrf.data import corpora
from ncrf.data.dataset import Dataset, InternedCorpus
from ncrf.data.documents import log_no_document
from ncrf.data.normalization import Normalization
from ncrf.data.partial import settled
from ncrf.data.schemes import PLAIN
from ncrf.data.template_features import TemplateFeatures, build_features, template_columns
from ncrf.data.templates import read_templates
from ncrf.data.vocabulary import Vocabulary
from ncrf.decode.predict import Predictor
from ncrf.errors import ConfigError, InputError
from ncrf.evaluate import Score, history_scores, report_lines
from ncrf.model import folder, pretrained
from ncrf.model.labeler import build_labeler, choose_device, reads_documents
from ncrf.train import checkpoint, folder_lock, warm_start
from ncrf.train.corpus_training import CorpusTrainer
from ncrf.train.machine import training_threads
from ncrf.train.minibatch import Trainer

logger = logging.getLogger(__name__)

# Groups that a resumed training may change, apart from its seed and corpus.
_FREE_GROUPS = ("run", "files", "decoding")
# Trainings in several threads run one after another: torch's random state is the process's own.
_ONE_TRAINING = threading.Lock()
_NAMED = 10  # labels that a warning names


def train_model(config: Config) -> Predictor:
    """Train as the config says; returns the best model, which is in ``model_dir`` as well.

    The global random state of torch and its number of threads are as they were afterwards.
    """
    log_idle_keys(config)
    files = config.files
    if files.model_dir is None or files.train_dir is None:
        raise ConfigError("training needs train_dir and model_dir")
    model_dir = Path(files.model_dir)
    check = partial(
        checkpoint.check_folder, model_dir, resume=files.resume, overwrite=files.overwrite
    )
    with folder_lock.held(model_dir, check):
        return _train(config, files.train_dir, model_dir)


def _train(config: Config, train_dir: str, model_dir: Path) -> Predictor:
    """Train into a folder that no other training has."""
    files, device = config.files, choose_device(config)
    with _ONE_TRAINING, torch.random.fork_rng(), _threads(config):
        torch.manual_seed(config.run.seed)
        read = _read_corpus(config, train_dir)
        vectors = pretrained.load(read.config, read.vocabulary, read.corpus)
        predictor = _untrained(vectors.resolved(read.config), read.vocabulary, vectors, device)
        dev = _encode(predictor, files.dev_dir)
        test = _encode(predictor, files.test_dir)
        predictor = _run(predictor, read, dev, model_dir)
    if dev is None:
        logger.info("no dev_dir: the last epoch is kept")
    if test is not None:
        score = predictor.score(test)
        _log_score("test", score)
        checkpoint.record_test(model_dir, history_scores(score))
    new_words = vectors.new_words if config.words.vectors_in_model else None
    checkpoint.finish(model_dir, None if new_words is None else new_words.stored())
    return predictor


@dataclass(frozen=True)
class _Read:
    """The training corpus, the alphabets of its model, and the config as it settled them.

    ``partial`` says that some labels stand for several.
    """

    config: Config
    corpus: InternedCorpus
    vocabulary: Vocabulary
    partial: bool


def _read_corpus(config: Config, path: str) -> _Read:
    """Read the training corpus, settle its label scheme and collect the alphabets."""
    corpus = corpora.load_corpus(config, path)
    _refuse_missing_features(config, corpus)
    scheme = corpora.settle_scheme(config, corpus)
    mode = settled(config.corpus.partial_labels, marks_spans=scheme.source != PLAIN)
    config = config.replace(partial_labels=mode)
    if config.inference.constraints == "all":
        corpora.refuse_illegal(config, corpus, scheme)
    partial = corpora.check_partial(config, corpus, scheme)
    vocabulary = Vocabulary.build(
        corpus,
        scheme,
        normalization=Normalization.of(config.corpus),
        partial_labels=mode,
    )
    if config.files.init_from is not None:
        old = warm_start.read_vocabulary(config.files.init_from)
        vocabulary = warm_start.extend_vocabulary(old, vocabulary)
    corpora.log_alphabets(vocabulary)
    if reads_documents(config) and not corpus.boundaries:
        raise InputError(
            "document_memory=True, but no line says where a document begins",
            file=path,
            remedy="-DOCSTART- lines, or document_memory=False",
        )
    if config.templates.template_file is not None:
        if partial:
            raise InputError(
                "template_file= needs a label for every word, and some are known in part",
                file=path,
                remedy="partial_labels=none takes every label as it stands",
            )
        vocabulary = replace(vocabulary, templates=_read_features(config, corpus, vocabulary))
    return _Read(config, corpus, vocabulary, partial)


def _read_features(
    config: Config, corpus: InternedCorpus, vocabulary: Vocabulary
) -> TemplateFeatures:
    """The features that the templates find in the training corpus."""
    keys = config.templates
    assert keys.template_file is not None
    labels = vocabulary.encode(corpus).labels
    assert labels is not None
    features = build_features(
        read_templates(keys.template_file),
        template_columns(corpus),
        corpus,
        labels,
        len(vocabulary.labels),
        cutoff=keys.feature_cutoff,
        all_possible_states=keys.all_possible_states,
        all_possible_transitions=keys.all_possible_transitions,
    )
    by_pairs = features.templates.bigram or features.templates.transitions
    if by_pairs and not config.inference.use_crf:
        raise config.error("use_crf", "use_crf=False, but there are B templates", "use_crf=True")
    logger.info(
        "templates: %s attributes, %s features",
        f"{features.attributes.num_unigram + features.attributes.num_bigram:,}",
        f"{features.index.num_features:,}",
    )
    return features


def _untrained(
    config: Config, vocabulary: Vocabulary, vectors: pretrained.Pretrained, device: torch.device
) -> Predictor:
    """The network before its first step: random, pretrained, or that of ``init_from``."""
    labeler = build_labeler(config, vocabulary)
    vectors.fill(labeler)
    if config.files.init_from is not None:
        warm_start.copy_weights(config.files.init_from, labeler)
    embedded = () if config.classical else tuple(vocabulary.features)
    labeler.representation.freeze(config.training.freeze, embedded)
    return Predictor(labeler.to(device), vocabulary, config, vectors.new_words)


def _run(predictor: Predictor, read: _Read, dev: Dataset | None, model_dir: Path) -> Predictor:
    """Train the predictor's model, in a new folder or from where a training stopped."""
    config = predictor.config
    evaluate = None if dev is None else lambda: predictor.score(dev)
    whole = config.training.optimizer in WHOLE_CORPUS
    build = _corpus_trainer if whole else _epoch_trainer
    trainer = build(predictor, read, model_dir, evaluate)
    _prepare_folder(config, model_dir, read.vocabulary, trainer)
    try:
        trainer.run()
    except KeyboardInterrupt:
        logger.info("interrupted after %s; resume=True goes on", trainer.where)
        raise
    if isinstance(trainer, CorpusTrainer):  # it has dropped features that came to nothing
        return Predictor(trainer.labeler, trainer.vocabulary, config)
    return predictor


def _corpus_trainer(
    predictor: Predictor, read: _Read, model_dir: Path, evaluate: Callable[[], Score] | None
) -> CorpusTrainer:
    """Training by a learner of the whole corpus."""
    train = read.vocabulary.encode(read.corpus)
    return CorpusTrainer(
        predictor.labeler, train, predictor.config, model_dir, read.vocabulary, evaluate
    )


def _epoch_trainer(
    predictor: Predictor, read: _Read, model_dir: Path, evaluate: Callable[[], Score] | None
) -> Trainer:
    """Training by minibatches."""
    threads = 1
    if predictor.labeler.device.type == "cpu" and predictor.labeler.runs_side_by_side:
        # Threads that compute parts of a layer keep the cores busier than torch's, which share out
        # single operations, and do not wait for each other where another program wants a core.
        threads = training_threads(predictor.config)
        torch.set_num_threads(1)
    return Trainer(
        predictor.labeler,
        read.vocabulary.encode(read.corpus, by_document=reads_documents(predictor.config)),
        predictor.config,
        model_dir,
        read.vocabulary,
        evaluate,
        partial_labels=read.partial,
        threads=threads,
    )


def _refuse_missing_features(config: Config, corpus: InternedCorpus) -> None:
    """ConfigError for a ``feature=`` line whose column the corpus does not have."""
    for spec in config.corpus.feature:
        if spec.name not in corpus.features:
            there = ", ".join(f"[{name}]" for name in corpus.features) or "none"
            raise config.error(
                f"feature [{spec.name}]",
                f"feature=[{spec.name}]: {corpus.file} has no such column",
                f"its feature columns: {there}",
            )


@contextmanager
def _threads(config: Config) -> Iterator[None]:
    """Compute with the number of threads that the config asks for, or that suits its batches."""
    before = torch.get_num_threads()
    torch.set_num_threads(training_threads(config))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _encode(predictor: Predictor, path: str | None) -> Dataset | None:
    """A labelled corpus in the model's ids; labels that training has not are said once."""
    if path is None:
        return None
    vocabulary = predictor.vocabulary
    corpus = corpora.load_corpus(predictor.config, path, features=tuple(vocabulary.features))
    if reads_documents(predictor.config) and not corpus.boundaries:
        log_no_document(path)
    dataset = predictor.encode(corpus)
    unseen = dataset.label_strings[len(vocabulary.labels) :]
    if unseen:
        names = ", ".join(unseen[:_NAMED]) + (", ..." if len(unseen) > _NAMED else "")
        logger.warning("%s: %d labels that training has not: %s", path, len(unseen), names)
    return dataset


def _prepare_folder(
    config: Config, model_dir: Path, vocabulary: Vocabulary, trainer: Trainer | CorpusTrainer
) -> None:
    """Begin anew, or go on where an unfinished training stopped."""
    if config.files.resume and checkpoint.can_resume(model_dir):
        _refuse_changes(config, model_dir, vocabulary)
        checkpoint.describe_again(model_dir, config, vocabulary)
        trainer.restore()
        return
    checkpoint.begin(model_dir, config, vocabulary)


def _refuse_changes(config: Config, model_dir: Path, vocabulary: Vocabulary) -> None:
    """ConfigError if an unfinished training is to go on with other keys or another corpus."""
    before, known = folder.read_description(model_dir / folder.TRAINING)
    old, new = before.flat(), config.flat()
    free = {key.name for key in all_keys() if key.group in _FREE_GROUPS} | {
        "iteration",
        "patience",
        "checkpoint_every",
    }
    for name in new:
        if name not in free - {"seed", "train_dir"} and old[name] != new[name]:
            raise config.error(
                name,
                f"resume=True: {name} was {old[name]}, now it is {new[name]}",
                "the same value, or overwrite=True to start anew",
            )
    if known != vocabulary:
        if replace(known, templates=None) == replace(vocabulary, templates=None):
            raise InputError(
                "resume=True: the templates are not those that training began with",
                file=config.templates.template_file,
                remedy="the same lines, or overwrite=True to start anew",
            )
        raise InputError(
            "resume=True: the corpus is not the one that training began with",
            file=config.files.train_dir,
            remedy="the same file, or overwrite=True to start anew",
        )


def _log_score(name: str, score: Score) -> None:
    logger.info("%s:", name)
    for line in report_lines(score):
        logger.info("%s", line)
