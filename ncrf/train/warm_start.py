"""Training that starts from a model there is: its alphabets grow, its weights stay."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path

import torch

from ncrf.config import model_folder
from ncrf.data.alphabet import Alphabet
from ncrf.data.vocabulary import Vocabulary
from ncrf.errors import ConfigError
from ncrf.model import folder
from ncrf.model.labeler import Labeler

logger = logging.getLogger(__name__)


def extend_vocabulary(old: Vocabulary, new: Vocabulary) -> Vocabulary:
    """The old model's alphabets with what the new training corpus adds behind them.

    Raises ConfigError where the two do not go together: another label scheme, other features.
    """
    if list(old.features) != list(new.features):
        raise ConfigError(
            f"init_from: its model has the features {list(old.features)}, the corpus has "
            f"{list(new.features)}",
            remedy="the same feature columns",
        )
    if old.scheme.target != new.scheme.target or old.normalization != new.normalization:
        raise ConfigError(
            f"init_from: its model has labels in {old.scheme.target}, this training in "
            f"{new.scheme.target}, or number_normalized or lowercase differs",
            remedy="the same tag_scheme, number_normalized and lowercase",
        )
    return Vocabulary(
        words=_extended(old.words, new.words),
        characters=_extended(old.characters, new.characters),
        features={name: _extended(old.features[name], new.features[name]) for name in new.features},
        labels=_extended(old.labels, new.labels),
        scheme=new.scheme,
        normalization=new.normalization,
        corpus=new.corpus,
    )


def _extended(old: Alphabet, new: Alphabet) -> Alphabet:
    """The strings of both, the old ones with the ids they have; counts are added up."""
    start = len(old.special)
    counts = Counter(dict(zip(old.strings[start:], old.counts[start:].tolist(), strict=True)))
    counts.update(dict(zip(new.strings[start:], new.counts[start:].tolist(), strict=True)))
    return Alphabet(list(counts), list(counts.values()), old.special)


def read_vocabulary(init_from: str) -> Vocabulary:
    """The vocabulary of the model to start from."""
    return folder.read_description(Path(model_folder(init_from)))[1]


def copy_weights(init_from: str, labeler: Labeler) -> None:
    """Copy the weights of a model into a fresh network whose alphabets extend the model's.

    Old strings have the same ids in both, so each old tensor is the leading block of the new
    one. Raises ConfigError where the layers differ.
    """
    old = folder.read_tensors(Path(model_folder(init_from)) / folder.WEIGHTS)
    new = labeler.state_dict()
    if set(old) != set(new):
        other = sorted(set(old) ^ set(new))[0]
        raise ConfigError(f"init_from: the layers differ ({other})", remedy="the same layers")
    grown = _may_grow(labeler)
    with torch.no_grad():
        for name, values in old.items():
            target = new[name]
            block = tuple(slice(0, size) for size in values.shape)
            if target[block].shape != values.shape or (
                target.shape != values.shape and name not in grown
            ):
                raise ConfigError(
                    f"init_from: {name} is {list(values.shape)} there, {list(target.shape)} here",
                    remedy="the same sizes",
                )
            target[block].copy_(values)
    logger.info("weights start from %s", init_from)


def _may_grow(labeler: Labeler) -> set[str]:
    """The tensors whose size follows an alphabet's."""
    return {
        name
        for name, _ in labeler.named_parameters()
        if "embedding" in name or name.startswith(("projection.", "inference.", "documents."))
    }
