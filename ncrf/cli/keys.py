"""``ncrf keys``: the table of config keys."""

from __future__ import annotations


def keys(arguments: list[str]) -> int:
    """Print the table of config keys."""
    from ncrf.config import keys_table

    print(keys_table(arguments[0] if arguments else ""))
    return 0
