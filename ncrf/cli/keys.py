"""``ncrf keys``: the table of config keys."""

from __future__ import annotations

import argparse


def keys(arguments: list[str]) -> int:
    """Print the table of config keys."""
    parser = argparse.ArgumentParser(prog="ncrf keys", description=keys.__doc__)
    parser.add_argument("word", nargs="?", default="", help="only keys that have it in them")
    parser.add_argument("--plugins", default="", help="modules whose keys to show as well")
    options = parser.parse_args(arguments)
    from ncrf.config import import_plugins, keys_table

    import_plugins(options.plugins)
    print(keys_table(options.word))
    return 0
