#!/usr/bin/env python3
"""Makes train.txt, dev.txt and test.txt of WNUT-17, emerging and rare entities.

    scripts/prepare_wnut17.py SOURCE [TARGET]

SOURCE is a folder (or a zip archive) with wnut17train.conll, emerging.dev.conll and
emerging.test.annotated. The lines stay as they are: word and entity with a tab, in IOB2.
emerging.test.conll is not used: some of its cells hold several labels.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from preparation.commands import new_parser, run
from preparation.corpus import ColumnCorpus
from preparation.counts import Counts

# Derczynski et al., "Results of the WNUT2017 Shared Task on Novel and Emerging Entity Recognition",
# W-NUT 2017. Of the training data the paper gives 3,395 posts and 62,729 tokens; the file that is
# distributed (leondz/emerging_entities_17) has 3,394 and 62,730, and 1,975 entities.
CORPUS = ColumnCorpus(
    name="WNUT-17",
    files={
        "train": "wnut17train.conll",
        "dev": "emerging.dev.conll",
        "test": "emerging.test.annotated",
    },
    reading={"columns": "word,label", "column_separator": "tab", "input_scheme": "IOB2"},
    published={
        "train": Counts(3_394, 62_730, 1_975),
        "dev": Counts(1_009, 15_733, 836),
        "test": Counts(1_287, 23_394, 1_079),
    },
)


def main(arguments: Sequence[str] | None = None, corpus: ColumnCorpus = CORPUS) -> int:
    parser = new_parser(__doc__, f"folder with {corpus.contents}", "data/wnut17")
    return run(corpus.prepare, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
