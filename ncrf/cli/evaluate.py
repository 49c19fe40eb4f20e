"""``ncrf evaluate``: score one labelled file against another."""

from __future__ import annotations

import argparse

from ncrf.cli.corpus_options import READING, add_key_options, given_keys, parsed

KEYS = (*READING, "sentence_classification")

_FILES = """\
The config keys say how the gold file is laid out. The predicted file may be laid out like it (its
rows have as many columns as columns= names), or as ncrf decode writes it: the word first, the label
last; in classification the words, a tab and the label. N-best output (a line "# p1 p2 ..." before
each sentence) is read too: its best labeling is scored. A column of probabilities after the
label (marginals=True) is left out. Labels that mark no spans are scored by accuracy.

Of a single file the last column is scored against the one before it, as conlleval does, a column of
probabilities left out; columns= may name the word's column and, as label, that of gold, as in
word,-,label,-. The file - is standard input."""


def evaluate(arguments: list[str]) -> int:
    """Score a labelled file against another, or the last column of one against the one before."""
    parser = argparse.ArgumentParser(
        prog="ncrf evaluate", description=evaluate.__doc__, epilog=_FILES
    )
    parser.add_argument("gold", metavar="GOLD", help="the file with the right labels")
    parser.add_argument(
        "predicted", metavar="PREDICTED", nargs="?", help="the file to be scored, if it is another"
    )
    parser.add_argument(
        "--policy",
        default="conlleval",
        choices=("conlleval", "strict"),
        help="how ill-formed labels are read: as conlleval does, or not as entities",
    )
    parser.add_argument(
        "--oracle",
        action="store_true",
        help="of n-best output score the labeling of each sentence that is nearest to gold "
        "(highest F1 of the sentence; of equals the more probable): how good a perfect choice "
        "among them would be",
    )
    add_key_options(parser, KEYS)
    options = parsed(parser, arguments)
    if options.predicted is None and options.oracle:
        parser.error("--oracle needs a second file, of n-best output")
    from ncrf.config import load_config
    from ncrf.evaluate import report_lines
    from ncrf.evaluate.files import score_columns, score_files

    keys = {**given_keys(options, KEYS), "score_policy": options.policy}
    config = load_config({}, keys, check_files=False)
    if options.predicted is None:
        score = score_columns(config, options.gold)
    else:
        score = score_files(config, options.gold, options.predicted, oracle=options.oracle)
    print("\n".join(report_lines(score)))
    return 0
