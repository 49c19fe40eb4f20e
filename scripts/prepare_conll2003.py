#!/usr/bin/env python3
"""Makes train.txt, dev.txt and test.txt of the English CoNLL-2003 corpus as distributed.

    scripts/prepare_conll2003.py SOURCE [TARGET]

SOURCE is a folder (or a zip archive) with eng.train, eng.testa and eng.testb, as the script of the
shared task makes them. The lines stay as they are: word, part of speech, chunk and entity, with
single spaces, entities in IOB1; a config reads them with columns=word,-,-,label. Files that are
not in UTF-8 are read with --encoding latin-1. Nothing is written if the counts are not the
published ones.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from preparation.commands import new_parser, run
from preparation.corpus import ColumnCorpus
from preparation.counts import Counts

# Tokens (table 1) and entities (table 2, summed over types): Tjong Kim Sang and De Meulder,
# "Introduction to the CoNLL-2003 Shared Task", CoNLL 2003. Its 14,987, 3,466 and 3,684 sentences
# count the 946, 216 and 231 lines -DOCSTART-, which are none here.
CORPUS = ColumnCorpus(
    name="CoNLL-2003",
    files={"train": "eng.train", "dev": "eng.testa", "test": "eng.testb"},
    reading={"columns": "word,-,-,label", "input_scheme": "IOB1"},
    published={
        "train": Counts(14_987 - 946, 203_621, 23_499),
        "dev": Counts(3_466 - 216, 51_362, 5_942),
        "test": Counts(3_684 - 231, 46_435, 5_648),
    },
)


def main(arguments: Sequence[str] | None = None, corpus: ColumnCorpus = CORPUS) -> int:
    parser = new_parser(__doc__, f"folder with {corpus.contents}", "data/conll2003")
    return run(corpus.prepare, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
