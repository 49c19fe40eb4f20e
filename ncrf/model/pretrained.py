"""Pretrained vectors: from the files that a config names into the embedding tables."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from ncrf.config import Config, FeatureSpec
from ncrf.data.alphabet import Alphabet
from ncrf.data.dataset import FloatArray, InternedCorpus
from ncrf.data.vectors import (
    Coverage,
    VectorFile,
    initial_rows,
    most_frequent_forms,
    spellings,
)
from ncrf.data.vocabulary import NewWordVectors, Vocabulary
from ncrf.model.labeler import Labeler
from ncrf.model.new_words import FoundRows

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pretrained:
    """The tables to begin with, ``[size of the alphabet, width]``; None without a vector file."""

    words: FloatArray | None
    characters: FloatArray | None
    features: dict[str, FloatArray | None]
    new_words: NewWordVectors | None

    def resolved(self, config: Config) -> Config:
        """The config with the widths that the vector files have, and all feature columns in it."""
        specs = {spec.name: spec for spec in config.corpus.feature}
        features = []
        for name, table in self.features.items():
            spec = specs.get(name, FeatureSpec(name))
            features.append(spec if table is None else replace(spec, emb_size=table.shape[1]))
        changes: dict[str, object] = {"feature": tuple(features)}
        for key, table in (("word_emb_dim", self.words), ("char_emb_dim", self.characters)):
            if table is not None:
                changes[key] = width = table.shape[1]
                if config.is_set(key) and config.value(key) != width:
                    logger.info("%s is %d, the width of the vectors", key, width)
        return config.replace(**changes)

    def fill(self, labeler: Labeler) -> None:
        """Copy the tables into a fresh network."""
        representation = labeler.representation
        _copy(self.words, representation.word_embedding)
        _copy(self.characters, representation.char_embedding)
        tables = representation.feature_embeddings
        if not len(tables):  # the classical CRF knows features by templates alone
            return
        for values, table in zip(self.features.values(), tables, strict=True):
            _copy(values, table)


def load(config: Config, vocabulary: Vocabulary, corpus: InternedCorpus) -> Pretrained:
    """Read the vector files of a training's config and match the alphabets with them.

    Coverage is said in the log. Raises InputError for a file that cannot be read.
    """
    generator = np.random.default_rng(config.run.seed)
    words, new_words = None, None
    if config.words.use_word_emb and config.words.word_emb_dir:
        originals = _originals(vocabulary, corpus)
        wanted = _wanted(vocabulary.words, originals)
        file = VectorFile(config.words.word_emb_dir, wanted, config.files.vector_cache)
        normalize = config.words.norm_word_emb
        words, coverage = initial_rows(
            vocabulary.words, file.table, generator, originals=originals, normalize=normalize
        )
        new_words = FoundRows(file, file.dim, normalize=normalize)
        _log_coverage(f"word vectors {file.path}", coverage)

    def table(
        alphabet: Alphabet, path: str | None, normalize: bool, what: str
    ) -> FloatArray | None:
        if path is None:
            return None
        found = VectorFile(path, _wanted(alphabet, {}), config.files.vector_cache).table
        rows, coverage = initial_rows(alphabet, found, generator, normalize=normalize)
        _log_coverage(f"{what} vectors {path}", coverage)
        return rows

    chars = config.chars
    specs = {spec.name: spec for spec in config.corpus.feature}
    features = {}
    for name, alphabet in vocabulary.features.items():
        spec = specs.get(name, FeatureSpec(name))
        features[name] = table(alphabet, spec.emb_dir, spec.emb_norm, f"[{name}]")
    return Pretrained(
        words=words,
        characters=table(
            vocabulary.characters,
            chars.char_emb_dir if chars.use_char else None,
            chars.norm_char_emb,
            "character",
        ),
        features=features,
        new_words=new_words,
    )


def _originals(vocabulary: Vocabulary, corpus: InternedCorpus) -> dict[str, str]:
    """The most frequent word that each normalized form stands for."""
    counts = corpus.words.counts().tolist()
    of_words = Counter(dict(zip(corpus.words.strings, counts, strict=True)))
    return most_frequent_forms(of_words, vocabulary.normalization)


def _wanted(alphabet: Alphabet, originals: dict[str, str]) -> set[str]:
    return {
        spelling
        for string in alphabet.strings[len(alphabet.special) :]
        for spelling in spellings(string, originals.get(string))
    }


def _log_coverage(what: str, coverage: Coverage) -> None:
    logger.info("%s: %s", what, "; ".join(coverage.lines()))
    warning = coverage.warning()
    if warning:
        logger.warning("%s: %s", what, warning)


def _copy(values: FloatArray | None, table: nn.Module | None) -> None:
    if values is not None and isinstance(table, nn.Embedding):
        with torch.no_grad():
            table.weight.copy_(torch.from_numpy(values))
