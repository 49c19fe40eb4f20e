"""``ncrf compare``: whether two systems differ by more than chance."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict

from ncrf.cli.corpus_options import READING, add_key_options, given_keys, parsed
from ncrf.errors import ConfigError

KEYS = (*READING, "sentence_classification")

_SYSTEMS = """\
A and B each are a predicted file, as ncrf evaluate reads it; a model folder, with which the gold
file is labelled now; a row of a sweep, that is all its seeds, as the path of its runs without the
seed (runs/sweep/ner/hidden_dim=100); or a pattern in quotes that names a file or a model for each
seed ("out/a.*.txt"). The config keys say how the gold file is laid out. docs/sweeps.md says what
each p means."""


def compare(arguments: list[str]) -> int:
    """Score two systems on a gold file and test whether their difference could be chance."""
    parser = argparse.ArgumentParser(
        prog="ncrf compare", description=compare.__doc__, epilog=_SYSTEMS
    )
    parser.add_argument("gold", metavar="GOLD", help="the file with the right labels")
    parser.add_argument("a", metavar="A", help="a system: file, model, or row of a sweep")
    parser.add_argument("b", metavar="B", help="the system that it is compared with")
    parser.add_argument(
        "--policy",
        default="conlleval",
        choices=("conlleval", "strict"),
        help="how ill-formed labels are read: as conlleval does, or not as entities",
    )
    parser.add_argument(
        "--shuffles", type=int, default=10_000, help="shuffles and samples of each test (10000)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn at random (1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_key_options(parser, KEYS)
    options = parsed(parser, arguments)
    if not 1 <= options.shuffles <= 10_000_000 or options.seed < 0:
        raise ConfigError("--shuffles is from 1 to 10,000,000, --seed from 0")
    return _compare(options)


def _compare(options: argparse.Namespace) -> int:
    from ncrf.config import load_config
    from ncrf.decode.systems import system_of
    from ncrf.evaluate.comparison import compare, comparison_lines

    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    keys = {**given_keys(options, KEYS), "score_policy": options.policy}
    config = load_config({}, keys, check_files=False)
    decode = load_config({"status": "decode"}, keys, check_files=False)
    a, b = (system_of(name, options.gold, config, decode) for name in (options.a, options.b))
    result = compare(a, b, shuffles=options.shuffles, seed=options.seed)
    if options.json:
        print(json.dumps(asdict(result)))
    else:
        print("\n".join(comparison_lines(result, a, b)))
    return 0
