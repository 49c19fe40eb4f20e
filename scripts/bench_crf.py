#!/usr/bin/env python3
"""Times ncrf.crf against other CRF code, both sides in turn in one process.

    scripts/bench_crf.py --pytorch-crf DIR --ncrfpp DIR

DIR is a checkout of each project. Without --pytorch-crf the installed package torchcrf is taken, if
there is one; torch-struct too is taken only if it is installed. Numbers are medians in
milliseconds, and a ratio above 1 says that ncrf.crf is faster. On a busy machine trust the ratios,
and leave each thread a core of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from ncrf.crf import LinearChainCRF

SIZES = [(10, 40, 19), (32, 50, 19), (128, 60, 19), (32, 50, 50), (64, 30, 200)]
SENTENCES = 128
Run = Callable[[], object]


def main() -> None:
    arguments = parse()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    torchcrf = package("torchcrf", arguments.pytorch_crf, "torchcrf/__init__.py")
    ncrfpp = package("ncrfpp_crf", arguments.ncrfpp, "model/crf.py") if arguments.ncrfpp else None
    struct = package("torch_struct", None, "")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; medians in ms")
    for name, found in (("pytorch-crf", torchcrf), ("torch-struct", struct), ("NCRF++", ncrfpp)):
        if found is None:
            print(f"{name}: not found, left out")
    for size in SIZES:
        compare_at(size, torchcrf, struct, arguments.seconds)
    compare_nbest(ncrfpp, arguments.seconds)
    print("one sentence (1, 20, 19):")
    emissions, mask = torch.randn(1, 20, 19), torch.ones(1, 20, dtype=torch.bool)
    crf = LinearChainCRF(19)
    report("decode", {"ncrf": decoding(crf, emissions, mask)}, arguments.seconds)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Times ncrf.crf against other CRF code.")
    parser.add_argument("--pytorch-crf", type=Path, help="a checkout of pytorch-crf")
    parser.add_argument("--ncrfpp", type=Path, help="a checkout of NCRF++")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each measurement")
    return parser.parse_args()


def package(name: str, checkout: Path | None, file: str) -> ModuleType | None:
    """A module from a checkout, or the installed one, or None."""
    if checkout is None:
        found = importlib.util.find_spec(name)
    else:
        found = importlib.util.spec_from_file_location(name, checkout / file)
    if found is None or found.loader is None:
        return None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module


def compare_at(
    size: tuple[int, int, int],
    torchcrf: ModuleType | None,
    struct: ModuleType | None,
    seconds: float,
) -> None:
    batch, length, labels = size
    print(f"(B, L, Y) = {size}:")
    emissions = torch.randn(batch, length, labels, requires_grad=True)
    gold = torch.randint(labels, (batch, length))
    mask = torch.ones(batch, length, dtype=torch.bool)
    crf = LinearChainCRF(labels)
    training = {"ncrf": training_step(crf, emissions, gold, mask)}
    viterbi = {"ncrf": decoding(crf, emissions, mask)}
    nbest: dict[str, Run] = {"ncrf": lambda: crf.nbest(emissions, mask, 10)}
    if torchcrf is not None:
        peer = torchcrf.CRF(labels, batch_first=True)
        crf.load_state_dict(peer.state_dict())
        training["pytorch-crf"] = training_step(peer, emissions, gold, mask)
        viterbi["pytorch-crf"] = decoding(peer, emissions, mask)
    if struct is not None:
        chain: Callable[[], Any] = struct_chain(struct, crf, emissions)
        training["torch-struct"] = lambda: chain().partition.sum().backward()
        viterbi["torch-struct"] = lambda: chain().argmax
        if size == SIZES[0]:  # one call takes half a minute here, and minutes at the next size
            nbest["torch-struct"] = lambda: chain().topk(10)
    report("loss and gradient", training, seconds)
    report("Viterbi", viterbi, seconds)
    report("10-best", nbest, seconds)


def training_step(crf: torch.nn.Module, emissions: Tensor, gold: Tensor, mask: Tensor) -> Run:
    def step() -> None:
        crf.zero_grad()
        emissions.grad = None
        crf(emissions, gold, mask).backward()

    return step


def decoding(crf: Any, emissions: Tensor, mask: Tensor) -> Run:
    def decode() -> object:
        with torch.no_grad():
            return crf.decode(emissions, mask)

    return decode


def struct_chain(
    struct: ModuleType, crf: LinearChainCRF, emissions: Tensor
) -> Callable[[], object]:
    """torch-struct's chain over potentials [B, L-1, Y (to), Y (from)]."""

    def chain() -> Any:
        scores = emissions[:, 1:].unsqueeze(3) + crf.transitions.t()
        first = scores[:, :1] + emissions[:, :1].unsqueeze(2)
        return struct.LinearChainCRF(torch.cat([first, scores[:, 1:]], 1))

    return chain


def compare_nbest(ncrfpp: ModuleType | None, seconds: float) -> None:
    """10-best of sentences as long as those of CoNLL-2003, on the same emissions."""
    generator = torch.Generator().manual_seed(1)
    # The lengths there are nearly log-normal, with a mean of 14 words.
    lengths = torch.empty(SENTENCES).log_normal_(2.3, 0.8, generator=generator)
    lengths = lengths.round().clamp(1, 60).long()
    longest = int(lengths.max())
    print(f"{SENTENCES} sentences of 1 to {longest} words, {int(lengths.sum())} words, 19 labels:")
    mask = torch.arange(longest) < lengths.unsqueeze(1)
    emissions = torch.randn(SENTENCES, longest, 19, generator=generator) * 3
    crf = LinearChainCRF(19)
    torch.nn.init.normal_(crf.transitions, generator=generator)
    sides: dict[str, Run] = {"ncrf": lambda: crf.nbest(emissions, mask, 10)}
    if ncrfpp is not None:
        with contextlib.redirect_stdout(io.StringIO()):
            peer = ncrfpp.CRF(19, False)
        with torch.no_grad():
            peer.transitions.zero_()
            peer.transitions[:19, :19] = crf.transitions
        padded = torch.cat([emissions, torch.zeros(SENTENCES, longest, 2)], 2)

        def decode() -> object:
            with torch.no_grad():
                return peer._viterbi_decode_nbest(padded, mask, 10)

        sides["NCRF++"] = decode
    report("10-best", sides, seconds)


def report(what: str, sides: dict[str, Run], seconds: float) -> None:
    """Runs the sides in turn for some seconds and prints their medians."""
    for run in sides.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in sides}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["ncrf"]) < 3:
        for name, run in sides.items():
            began = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - began) * 1e3)
    medians = {name: statistics.median(values) for name, values in times.items()}
    line = f"  {what:18} ncrf {medians.pop('ncrf'):9.3f}"
    ours = statistics.median(times["ncrf"])
    for name, median in medians.items():
        line += f"   {name} {median:9.3f} ({median / ours:.1f} times)"
    print(line, flush=True)


if __name__ == "__main__":
    main()
