"""``ncrf weights``: what a model has learned."""

from __future__ import annotations

import argparse


def weights(arguments: list[str]) -> int:
    """Print the transitions of a model and the strongest features of each label."""
    parser = argparse.ArgumentParser(prog="ncrf weights", description=weights.__doc__)
    parser.add_argument("model", metavar="MODEL", help="a model folder")
    parser.add_argument(
        "--top", type=int, default=10, metavar="N", help="features for and against a label (10)"
    )
    options = parser.parse_args(arguments)
    if options.top < 1:
        parser.error(f"--top {options.top}: expected 1 or more")
    from ncrf.config import model_folder
    from ncrf.model.weights_report import weight_lines

    for line in weight_lines(model_folder(options.model), options.top):
        print(line)
    return 0
