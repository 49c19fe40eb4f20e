#!/usr/bin/env python3
"""Makes train.txt, dev.txt and test.txt for Chinese word segmentation, a character a line.

    scripts/prepare_cws.py SOURCE [TARGET] [--dev N]

SOURCE is a folder (or a zip archive) with one of these for each part:

    NAME-ud-train.conllu ...        a treebank of Universal Dependencies, as Chinese-GSDSimp
    train.bmes, dev.bmes ...        a character and its label B, M, E or S in every line
    NAME_training.utf8, NAME_test_gold.utf8     SIGHAN 2005: lines of words with spaces between;
                                                or NAMEtrain.txt, NAMEdev.txt, NAMEtest.txt

Where there is no dev part, --dev N says how many of the last training sentences become one. What is
made has three columns, with tabs: the character; it and the one after it, a feature that helps; and
its label. A config reads it with columns=word,[BIGRAM],label, or with columns=word,-,label without
the feature.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from preparation.commands import new_parser, run
from preparation.counts import Counts
from preparation.segmentation import column_lines, sentences
from preparation.sources import SourceFile, find, find_optional
from preparation.splitting import split_off
from preparation.treebank import published_size
from preparation.writing import Part, Published, staged, write_parts

from ncrf.errors import InputError

READING = {"columns": "word,-,label", "column_separator": "tab", "input_scheme": "BMES"}
PATTERNS = {
    "train": ["*-ud-train.conllu", "*train.bmes", "*training.utf8", "*train.txt"],
    "dev": ["*-ud-dev.conllu", "*dev.bmes", "*dev.utf8", "*dev.txt"],
    "test": ["*-ud-test.conllu", "*test.bmes", "*test_gold.utf8", "*test.txt"],
}
CONTENTS = "a treebank, files .bmes, or lines of words"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__, f"folder with {CONTENTS}", "data/cws")
    parser.add_argument(
        "--dev",
        type=int,
        metavar="N",
        help="how many training sentences become the dev part, where there is none",
    )
    return run(prepare, parser.parse_args(arguments))


def prepare(given: argparse.Namespace) -> None:
    files = {part: find(given.source, PATTERNS[part], CONTENTS) for part in ("train", "test")}
    dev = find_optional(given.source, PATTERNS["dev"])
    if (dev is None) == (given.dev is None):
        has, remedy = ("no", "--dev N makes one") if dev is None else ("a", "leave --dev out")
        raise InputError(f"there is {has} dev part in it", file=given.source, remedy=remedy)
    if dev is not None:
        files["dev"] = dev
    parts = [_part(given, part, file) for part, file in files.items()]
    with staged(given.target) as folder:
        write_parts(folder, parts, READING, any_version=given.any_version)
        if given.dev is not None:
            split_off(folder / "train.txt", folder / "dev.txt", given.dev)


def _part(given: argparse.Namespace, part: str, file: SourceFile) -> Part:
    known = published_size(given.source, file, part)
    published = known and Published(Counts(known[0].sentences, spans=known[0].words), known[1])
    lines = (line for words in sentences(file, given.encoding) for line in column_lines(words))
    return Part(f"{part}.txt", file.name, lines, published)


if __name__ == "__main__":
    sys.exit(main())
