"""What a model folder holds, told without torch: layers, sizes, labels, scores, files.

Weights are not read, only the header of their file, so that the answer comes at once.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from ncrf.config import Config
from ncrf.data.vocabulary import Vocabulary
from ncrf.errors import InputError
from ncrf.model.folder import (
    HISTORY,
    TRAINING,
    VECTORS,
    WEIGHTS,
    history_of,
    read_description,
    read_file,
)
from ncrf.model.manifest import names_of, place_of

Shapes = Mapping[str, tuple[int, ...]]

SCORES = ("precision", "recall", "f1", "accuracy")
#: Running means and the like: in the file, but not learned.
_STATISTICS = re.compile(r"\.(running_mean|running_var|num_batches_tracked)$")
_PARTS = (
    ("representation.word_embedding.", "word embedding"),
    ("representation.char_embedding.", "character embedding"),
    ("representation.char_layer.", "character layer"),
    ("word_layer.", "word layer"),
    ("projection.", "projection to labels"),
    ("inference.", "transitions"),
    ("templates.", "template features"),
    ("documents.", "document memory"),
)
#: The weights through which the word layers of ncrf take their input in.
_WORD_LAYER_INPUTS = (
    "word_layer.recurrent.rnn.weight_ih_l0",
    "word_layer.input_projection.weight",
)
_FEATURE = re.compile(r"representation\.feature_embeddings\.(\d+)\.")


@dataclass(frozen=True)
class ModelDescription:
    """A model folder read: config, alphabets, shapes of the tensors, epochs, file sizes (bytes)."""

    folder: Path
    config: Config
    vocabulary: Vocabulary
    shapes: Shapes
    history: list[dict[str, Any]]
    files: dict[str, int]

    @property
    def unfinished(self) -> bool:
        """Whether its training has not come to an end."""
        return (self.folder / TRAINING).exists()

    @property
    def learns_transitions(self) -> bool:
        """Whether the labels are chosen by a CRF; in a softmax model transitions are fixed at 0."""
        keys = self.config
        return keys.inference.use_crf and not keys.corpus.sentence_classification

    def parameters(self) -> dict[str, int]:
        """How many numbers each part of the network has learned; parts that have none are out."""
        counts: Counter[str] = Counter()
        for name, shape in self.shapes.items():
            part = self._part(name)
            if not _STATISTICS.search(name) and (part != "transitions" or self.learns_transitions):
                counts[part] += math.prod(shape)
        order = [*(part for _, part in _PARTS[:1]), *self._feature_parts()]
        order += [part for _, part in _PARTS[1:]]
        known = {part: counts.pop(part) for part in order if counts[part]}
        return known | {part: count for part, count in counts.items() if count}

    def best(self) -> dict[str, Any] | None:
        """The epoch whose weights were kept: the last one that was best, or the last of all."""
        return kept_epoch(self.history) if self.history else None

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of one tensor, None if the model has no such."""
        return self.shapes.get(name)

    def width(self, name: str) -> int | None:
        """How wide the input of a layer is, whose weight ``[out, in]`` is the tensor ``name``."""
        shape = self.shape(name)
        return shape[1] if shape is not None and len(shape) == 2 else None

    def char_width(self) -> int | None:
        """How wide the character layer's vectors are; None where no tensor tells.

        That is what the input of the next layer has beyond the embeddings. The word layers that
        plugins bring are not known here.
        """
        if self.config.word_layer.use_word_seq:
            whole = next(filter(None, map(self.width, _WORD_LAYER_INPUTS)), None)
        else:
            whole = self.width("projection.weight")
        if whole is None:
            return None
        return whole - sum(
            shape[1]
            for name, shape in self.shapes.items()
            if name == "representation.word_embedding.weight" or _FEATURE.match(name)
        )

    def _part(self, name: str) -> str:
        found = _FEATURE.match(name)
        if found and int(found[1]) < len(self._feature_parts()):
            return self._feature_parts()[int(found[1])]
        return next((part for start, part in _PARTS if name.startswith(start)), name.split(".")[0])

    def _feature_parts(self) -> list[str]:
        return [f"[{spec.name}] embedding" for spec in self.config.corpus.feature]


def describe(folder: str | os.PathLike[str]) -> ModelDescription:
    """Read a model folder; InputError for one that is missing, damaged or has no weights yet.

    Every file that has a checksum is compared with it.
    """
    path = Path(folder)
    config, vocabulary = read_description(path)
    for name in sorted(names_of(path) & {WEIGHTS, VECTORS}):
        read_file(path / name)
    return ModelDescription(
        folder=path,
        config=config,
        vocabulary=vocabulary,
        shapes=tensor_shapes(place_of(path, WEIGHTS)),
        history=read_history(path / HISTORY),
        files={
            str(file.relative_to(path)): file.stat().st_size
            for file in sorted(path.rglob("*"))
            if file.is_file() and not file.name.startswith(".")
        },
    )


def tensor_shapes(path: Path) -> Shapes:
    """The shapes of the tensors in a safetensors file, from its header alone."""
    try:
        with safe_open(path, framework="numpy") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise InputError("there are no weights", file=path, remedy="train the model") from None
    except (OSError, SafetensorError) as error:
        raise InputError(f"is damaged: {error}", file=path) from error


def kept_epoch(history: list[dict[str, Any]]) -> dict[str, Any]:
    """Of at least one epoch, the one whose weights were kept: the last best, or the last of all."""
    best = [epoch for epoch in history if epoch.get("dev") and epoch.get("best")]
    return (best or history)[-1]


def read_history(path: Path) -> list[dict[str, Any]]:
    """The epochs of ``history.jsonl``; none if there is no such file (a model that was saved)."""
    epochs = []
    for number, line in enumerate(history_of(path.parent).splitlines(), 1):
        try:
            epoch = json.loads(line)
            epoch["epoch"] = int(epoch["epoch"])
            for scores in filter(None, (epoch.get("dev"), epoch.get("test"))):
                if not all(0 <= scores[name] <= 1 for name in SCORES):
                    raise ValueError("a score out of range")
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise InputError("is damaged: no epoch", file=path, line=number) from error
        epochs.append(epoch)
    return epochs
