"""From a model folder to a predictor."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from ncrf.config import Config, merge_decode_config
from ncrf.decode.predict import Predictor
from ncrf.errors import InputError
from ncrf.model import folder
from ncrf.model.labeler import build_labeler, choose_device
from ncrf.model.new_words import new_words_for_decoding


@torch.inference_mode(False)  # whatever mode it is called in, its weights serve in every one
def load_predictor(model_dir: str | Path, decode: Config) -> Predictor:
    """Load the model of a folder; ``decode`` changes what does not shape it.

    Raises InputError for a folder that is missing, damaged or unfinished, ConfigError for a key
    that would need another model.
    """
    place = Path(model_dir)
    # os.path: a folder that may not be looked into is read_description's to refuse
    if os.path.exists(place / folder.TRAINING) and not os.path.exists(place / folder.WEIGHTS):
        raise InputError(
            "holds an unfinished training without a model yet",
            file=place,
            remedy="go on with it: resume=True",
        )
    model_config, vocabulary = folder.read_description(place)
    config = merge_decode_config(model_config, decode)
    _refuse_vectors(model_config, decode)
    labeler = build_labeler(config, vocabulary)
    try:
        labeler.load_state_dict(folder.read_tensors(place / folder.WEIGHTS))
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(
            f"does not fit {folder.CONFIG}: {reason}", file=place / folder.WEIGHTS
        ) from error
    if not all(bool(torch.isfinite(weights).all()) for weights in labeler.parameters()):
        raise InputError("is damaged: not all weights are finite", file=place / folder.WEIGHTS)
    return Predictor(
        labeler.to(choose_device(config)),
        vocabulary,
        config,
        new_words_for_decoding(config, place),
        batch_size=config.training.batch_size if decode.is_set("batch_size") else None,
    )


def _refuse_vectors(model: Config, decode: Config) -> None:
    """ConfigError for a vector file that is given to a model trained without one."""
    words, path = model.words, decode.words.word_emb_dir
    if words.use_word_emb and words.word_emb_dir is None and path is not None:
        raise decode.error(
            "word_emb_dir",
            f"word_emb_dir={path}: the model has no pretrained vectors",
            "leave the key out",
        )
