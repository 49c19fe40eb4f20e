#!/usr/bin/env python3
"""Makes train.txt, dev.txt and test.txt with parts of speech of a Universal Dependencies treebank.

    scripts/prepare_ud.py SOURCE [TARGET]

SOURCE is a treebank's folder (or a zip archive of it) with NAME-ud-train.conllu, NAME-ud-dev.conllu
and NAME-ud-test.conllu, or one with tables of form, UPOS and XPOS, NAME-train.pos.tsv and so on.
What is made has these three columns, with tabs; a config reads them with columns=word,label,-
(UPOS) or columns=word,-,label (XPOS). Ranges such as 2-3 and empty nodes are left out, so that the
words are UD's syntactic words. Counts are compared with the stats.xml in SOURCE or, without one,
with those of known treebanks. A config may also read .conllu files as they are, with
file_format=conllu.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from preparation.commands import new_parser, run
from preparation.counts import Counts
from preparation.sources import SourceFile, find
from preparation.treebank import PARTS, conllu_sentences, published_size
from preparation.writing import Part, Published, staged, write_parts

READING = {"columns": "word,label,-", "column_separator": "tab", "input_scheme": "plain"}
FORM, UPOS, XPOS = 1, 3, 4
CONTENTS = "the .conllu files of a treebank"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__, f"folder with {CONTENTS}", "data/ud_pos")
    return run(prepare, parser.parse_args(arguments))


def prepare(given: argparse.Namespace) -> None:
    parts = [_part(given, part) for part in PARTS]
    with staged(given.target) as folder:
        write_parts(folder, parts, READING, any_version=given.any_version)


def _part(given: argparse.Namespace, part: str) -> Part:
    patterns = [f"*-ud-{part}.conllu", f"*-{part}.pos.tsv"]
    file = find(given.source, patterns, CONTENTS)
    known = published_size(given.source, file, part)
    published = known and Published(Counts(known[0].sentences, known[0].words), known[1])
    return Part(f"{part}.txt", file.name, _lines(file, given.encoding), published)


def _lines(file: SourceFile, encoding: str) -> Iterator[str]:
    if not file.base.endswith(".conllu"):
        yield from file.lines(encoding)
        return
    for sentence in conllu_sentences(file, encoding):
        for row in sentence.rows or ():
            yield f"{row[FORM]}\t{row[UPOS]}\t{row[XPOS]}"
        yield ""


if __name__ == "__main__":
    sys.exit(main())
