"""Where the time of a training and of a decoding goes: seconds by stage, in one process.

    python -m benchmark.stages train|decode CONFIG --json OUT

Started by scripts/bench.py, each time in a process of its own. The stages are functions of ncrf,
named below, that are put on a clock from outside. "the rest" is what the program spends outside of
all of them. Beside that stands the time of the matrix products alone that word layer and projection
cannot do without: nothing can be faster than those.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmark.clock import Clock, watch

Groups = dict[str, dict[str, tuple[str, ...]]]

_LOADING = {
    "reading": ("ncrf.data.columns:CorpusReader.__iter__",),
    "encoding": (
        "ncrf.data.dataset:intern_corpus",
        "ncrf.data.features:add_computed_features",
        "ncrf.data.vocabulary:Vocabulary.encode",
    ),
}
_NETWORK = {
    "batch assembly": (
        "ncrf.data.batch:make_batch",
        "ncrf.data.batch:training_batches",
        "ncrf.data.batch:pieces",
    ),
    "representation": ("ncrf.model.representation:WordRepresentation.forward",),
    "word layer": ("ncrf.model.word_layers:WordLayer.forward",),
    "projection": ("ncrf.model.labeler:Labeler.forward",),
}
TRAINING: Groups = {
    "loading": {
        **_LOADING,
        "alphabets and vectors": (
            "ncrf.data.corpora:settle_scheme",
            "ncrf.data.vocabulary:Vocabulary.build",
            "ncrf.model.pretrained:load",
        ),
    },
    "steps": {
        **_NETWORK,
        "CRF": ("ncrf.model.inference_layers:ChainInference.loss",),
        "backward": ("torch:Tensor.backward", "torch.autograd:backward", "torch.autograd:grad"),
        "optimizer": (
            "ncrf.train.optimizers:Updates.step",
            "ncrf.train.optimizers:Updates.zero_grad",
        ),
    },
}
DECODING: Groups = {
    "loading": {"loading the model": ("ncrf.decode.load:load_predictor",)},
    "steps": {
        **_LOADING,
        "new words": ("ncrf.decode.known_words:KnownWords.find",),
        "batch assembly": ("ncrf.data.batch:make_row_batch",),
        "word layer": (
            "ncrf.model.folded:FoldedRecurrent.emissions",
            "ncrf.model.folded:FoldedRecurrent.states",
            "ncrf.model.word_layers:WordLayer.forward",
        ),
        "CRF": (
            "ncrf.model.inference_layers:ChainInference.posterior",
            "ncrf.crf.posterior:Posterior.nbest",
            "ncrf.crf.posterior:Posterior.viterbi",
            "ncrf.crf.posterior:Posterior.marginals",
            "ncrf.crf.posterior:Posterior.log_prob",
            "ncrf.crf.posterior:Posterior.span_probability",
            "ncrf.crf.posterior:Posterior.spans_above",
        ),
        "writing": ("ncrf.decode.writers:*", "os:fsync"),
    },
}


_ROWS = 4096  # words that go through a matrix product at a time, for the limit


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds by stage of a training or a decoding.")
    parser.add_argument("status", choices=("train", "decode"))
    parser.add_argument("config")
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    profile = profile_training if arguments.status == "train" else profile_decoding
    arguments.json.write_text(json.dumps(profile(arguments.config)), encoding="utf-8")


def profile_training(config: str) -> dict[str, Any]:
    """Train as a config says; the seconds of the epochs and of their stages."""
    from ncrf import load_config
    from ncrf.train.training import train_model  # with all that it imports, before the clock

    clock, lost = _clock(TRAINING)
    predictor = train_model(load_config(config))
    model = Path(predictor.config.files.model_dir or "")
    lines = (model / "history.jsonl").read_text(encoding="utf-8").splitlines()
    seconds = sum(json.loads(line)["seconds"] for line in lines)
    limit = 3 * seconds_of_products(predictor.labeler)  # forward, and two gradients
    return {**_stages(clock, TRAINING, seconds), "limit_ns_per_token": limit * 1e9, "lost": lost}


def profile_decoding(config: str) -> dict[str, Any]:
    """Decode as a config says, in one thread; the seconds from file to file and of its stages."""
    import torch

    from ncrf import load_config
    from ncrf.decode import files, load

    keys = load_config(config).replace(threads=1)  # others are not watched
    torch.set_num_threads(1)
    clock, lost = _clock(DECODING)
    start = time.perf_counter()
    files.decode_file(keys)
    seconds = time.perf_counter() - start - clock.seconds.get("loading the model", 0.0)
    found = _stages(clock, DECODING, seconds)
    limit = seconds_of_products(load.load_predictor(keys.files.load_model_dir or "", keys).labeler)
    return {**found, "limit_ns_per_token": limit * 1e9, "lost": lost}


def _clock(groups: Groups) -> tuple[Clock, list[str]]:
    import torch

    clock = Clock(torch.cuda.synchronize if torch.cuda.is_available() else None)
    lost = [name for stages in groups.values() for name in watch(clock, stages, "ncrf")]
    return clock, lost


def _stages(clock: Clock, groups: Groups, seconds: float) -> dict[str, Any]:
    """Seconds by stage; those of the steps add up to ``seconds`` with the rest."""
    table = {
        group: {stage: clock.seconds.get(stage, 0.0) for stage in stages}
        for group, stages in groups.items()
    }
    table["steps"]["the rest"] = seconds - sum(table["steps"].values())
    return {"seconds": seconds, **table, "aside": clock.aside}


def seconds_of_products(labeler: Any) -> float:
    """Seconds a word of the matrix products of word layer and projection, many words at a time."""
    import torch

    parts = (getattr(labeler, name, None) for name in ("word_layer", "projection"))
    layers = [layer for layer in parts if layer is not None]
    total = 0.0
    with torch.inference_mode():
        for weights in (w for layer in layers for w in layer.parameters() if w.dim() > 1):
            matrix = weights.flatten(1).t().contiguous()
            inputs = torch.ones(_ROWS, matrix.shape[0], device=matrix.device)
            total += _quickest(partial(torch.mm, inputs, matrix, out=torch.mm(inputs, matrix)))
    return total / _ROWS


def _quickest(run: Callable[[], object], turns: int = 10) -> float:
    """Seconds of the quickest of some turns."""
    import torch

    times = []
    for _ in range(turns):
        start = time.perf_counter()
        run()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
