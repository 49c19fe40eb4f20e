#!/usr/bin/env python3
"""Makes train.txt, dev.txt, all.txt and test.txt of the CoNLL-2000 chunking corpus.

    scripts/prepare_conll2000.py SOURCE [TARGET] [--dev N]

SOURCE is a folder with train.txt and test.txt, or NLTK's conll2000.zip. The lines stay as they are:
word, part of speech and chunk, with single spaces, chunks in IOB2; a config reads them with
columns=word,-,label, or with columns=word,[POS],label to use the parts of speech too.

The corpus has no dev part. The last 1,000 sentences of the training file become dev.txt, the others
train.txt; all.txt has all of them, to train on when the settings are chosen. --dev N takes another
number.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence

from preparation.commands import new_parser, run
from preparation.corpus import ColumnCorpus
from preparation.counts import Counts
from preparation.splitting import split_off
from preparation.writing import staged

# Tokens and the chunks of the training file: Tjong Kim Sang and Buchholz, "Introduction to the
# CoNLL-2000 Shared Task: Chunking", CoNLL 2000. Sentences and the chunks of the test file: as
# conlleval counts them in the files of the shared task.
CORPUS = ColumnCorpus(
    name="CoNLL-2000",
    files={"train": "train.txt", "test": "test.txt"},
    reading={"columns": "word,-,label", "input_scheme": "IOB2"},
    published={
        "train": Counts(8_936, 211_727, 106_978),
        "test": Counts(2_012, 47_377, 23_852),
    },
)
DEV_SENTENCES = 1_000


def main(arguments: Sequence[str] | None = None, corpus: ColumnCorpus = CORPUS) -> int:
    source = f"folder with {corpus.contents}, or conll2000.zip"
    parser = new_parser(__doc__, source, "data/conll2000")
    parser.add_argument(
        "--dev",
        type=int,
        default=DEV_SENTENCES,
        metavar="N",
        help="how many training sentences become the dev part (default: %(default)s)",
    )

    def prepare(given: argparse.Namespace) -> None:
        with staged(given.target) as folder:
            corpus.write(folder, given)
            shutil.copyfile(folder / "train.txt", folder / "all.txt")
            split_off(folder / "train.txt", folder / "dev.txt", given.dev)

    return run(prepare, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
