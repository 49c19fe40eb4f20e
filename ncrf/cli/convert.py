"""``ncrf convert``: a corpus in another label scheme."""

from __future__ import annotations

import argparse

from ncrf.cli.corpus_options import READING, add_key_options, given_keys, parsed

KEYS = (*READING, "partial_labels")


def convert(arguments: list[str]) -> int:
    """Write a corpus with its labels in another scheme; all else stays as it stood."""
    parser = argparse.ArgumentParser(
        prog="ncrf convert",
        description=convert.__doc__,
        epilog="Input that can be read only once, such as standard input, is first copied to a "
        "temporary file.",
    )
    parser.add_argument("--to", required=True, metavar="BIO|BIOES|IOB1|BMES|BILOU", help="scheme")
    parser.add_argument("source", metavar="IN", help="the corpus; may end in .gz; - is stdin")
    parser.add_argument("output", metavar="OUT", help="the new file, packed if .gz; - is stdout")
    add_key_options(parser, KEYS)
    options = parsed(parser, arguments)
    from ncrf.config import load_config
    from ncrf.data.conversion import convert_file

    config = load_config({}, given_keys(options, KEYS), check_files=False)
    convert_file(config, options.source, options.output, options.to)
    return 0
