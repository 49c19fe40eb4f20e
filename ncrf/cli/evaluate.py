"""``ncrf evaluate``: score one labelled file against another."""

from __future__ import annotations

import argparse


def evaluate(arguments: list[str]) -> int:
    """Score a labelled file against another, line by line."""
    parser = argparse.ArgumentParser(prog="ncrf evaluate", description=evaluate.__doc__)
    parser.add_argument("gold", help="the file with the right labels")
    parser.add_argument("predicted", help="the file with the labels to be scored")
    parser.add_argument("--columns", help="columns of both files, as in a config")
    parser.add_argument("--column_separator", default="auto", choices=("auto", "tab", "space"))
    parser.add_argument("--comment_prefix", help="what comment lines begin with")
    parser.add_argument("--label_delimiter", default="-", help="between prefix and type")
    parser.add_argument("--policy", default="conlleval", choices=("conlleval", "strict"))
    options = parser.parse_args(arguments)
    from ncrf.evaluate import report_lines
    from ncrf.evaluate.files import score_files

    score = score_files(
        options.gold,
        options.predicted,
        columns=options.columns,
        separator=options.column_separator,
        comment_prefix=options.comment_prefix,
        delimiter=options.label_delimiter,
        policy=options.policy,
    )
    print("\n".join(report_lines(score)))
    return 0
