"""Best labels and marginals of a whole corpus by the classical CRF."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ncrf.crf import marginals, viterbi
from ncrf.data.attributes import TokenAttributes
from ncrf.data.dataset import IntArray
from ncrf.data.feature_index import FeatureIndex
from ncrf.model.corpus_chains import CorpusChains

Floats = NDArray[np.float64]


def best_labels(index: FeatureIndex, weights: Floats, attributes: TokenAttributes) -> IntArray:
    """The labels ``[T]`` of the best labeling of each sentence, by weights ``[K]``."""
    found = np.zeros(attributes.num_tokens, np.int64)
    for tokens, emissions, transitions, mask in _chains(index, weights, attributes):
        labels = viterbi(emissions, transitions, mask=mask).labels.numpy()
        found[tokens[tokens >= 0]] = labels[tokens >= 0]
    return found


def label_marginals(index: FeatureIndex, weights: Floats, attributes: TokenAttributes) -> Floats:
    """The probability ``[T,Y]`` of each label of each word, by weights ``[K]``."""
    found = np.zeros((attributes.num_tokens, index.num_labels))
    for tokens, emissions, transitions, mask in _chains(index, weights, attributes):
        probabilities = marginals(emissions, transitions, mask=mask).numpy()
        found[tokens[tokens >= 0]] = probabilities[tokens >= 0]
    return found


def _chains(
    index: FeatureIndex, weights: Floats, attributes: TokenAttributes
) -> Iterator[tuple[IntArray, Tensor, Tensor, Tensor | None]]:
    """By batch: the word at each place ``[B,L]``, emissions, transitions and mask."""
    corpus = CorpusChains(index, attributes, torch.float64)
    given = torch.from_numpy(weights)
    emissions = corpus.scorer.emissions(given[index.parts[0]])
    for batch, part, transitions, _ in corpus.chains(emissions, given):
        tokens = corpus.layout.tokens[batch.places].reshape(batch.shape)
        yield tokens, part, transitions, batch.mask
