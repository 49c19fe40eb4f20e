"""The test score of a model that was trained without one, or before it was recorded."""

from __future__ import annotations

from pathlib import Path

import torch

from ncrf.config import load_config
from ncrf.data import corpora
from ncrf.decode.load import load_predictor
from ncrf.errors import InputError
from ncrf.evaluate import history_scores
from ncrf.train import checkpoint, folder_lock
from ncrf.train.machine import training_threads


def score_late(model_dir: str, test: str) -> None:
    """Score a model on ``test`` as training does at its end, and record it in its folder.

    Raises InputError for a model that cannot be used, or whose vector file is not at hand.
    """
    place = Path(model_dir)
    folder_lock.refuse_locked(place)
    predictor = load_predictor(place, load_config({"status": "decode"}, check_files=False))
    if predictor.lacks_vectors:
        raise InputError(
            f"was trained with {predictor.config.words.word_emb_dir}, which is not there now",
            file=place,
            remedy="put the vectors there, or train the run anew",
        )
    torch.set_num_threads(training_threads(predictor.config))
    features = tuple(predictor.vocabulary.features)
    corpus = corpora.load_corpus(predictor.config, test, features=features)
    checkpoint.record_test(place, history_scores(predictor.score(predictor.encode(corpus))))
