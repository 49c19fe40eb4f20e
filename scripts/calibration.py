#!/usr/bin/env python3
"""How well a model's probabilities are calibrated, as Markdown tables.

    scripts/calibration.py MODEL FILE

For the predicted entities and for the predicted labels of all words: in ten bins of the probability
that the model gives, how many there are, their mean probability, and the share that is right. It is
one section of what `ncrf report MODEL FILE` prints.
"""

from __future__ import annotations

import argparse

from ncrf import Tagger
from ncrf.evaluate.analysis_report import reliability_lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a model folder")
    parser.add_argument("file", help="a labelled file, laid out like the training file")
    arguments = parser.parse_args()
    analysis = Tagger.load(arguments.model).analyze(arguments.file)
    tables = {
        "Predicted entities": analysis.entity_calibration,
        "Predicted labels": analysis.label_calibration,
    }
    for title, table in tables.items():
        if table is not None:
            print("\n".join([*reliability_lines(title, table), ""]))


if __name__ == "__main__":
    main()
