"""``ncrf info``: what a model folder holds."""

from __future__ import annotations

import argparse


def info(arguments: list[str]) -> int:
    """Print the layers, sizes, labels, scores and files of a model."""
    parser = argparse.ArgumentParser(prog="ncrf info", description=info.__doc__)
    parser.add_argument("model", metavar="MODEL", help="a model folder")
    parser.add_argument("--plugins", default="", help="modules that the model's layers come from")
    options = parser.parse_args(arguments)
    from ncrf.config import import_plugins, model_folder
    from ncrf.model.description import describe
    from ncrf.model.description_report import description_lines

    import_plugins(options.plugins)
    print("\n".join(description_lines(describe(model_folder(options.model)))))
    return 0
