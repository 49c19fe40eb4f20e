"""Writing predictions: one block a sentence, one line a word, words as they stood."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import IO

from ncrf.data.output_files import replacing
from ncrf.decode.prediction import Prediction
from ncrf.errors import InputError


def text_block(prediction: Prediction, separator: str) -> str:
    """A sentence in columns: word, label (or the n best), P of the label if computed.

    With n-best a header ``# p1 p2 ...`` comes first, 4 significant digits each.
    """
    columns = [prediction.tokens]
    header = ""
    if prediction.nbest is None:
        columns.append(prediction.labels)
    else:
        columns += [labeling.labels for labeling in prediction.nbest]
        header = "# " + " ".join(_digits(x.probability) for x in prediction.nbest) + "\n"
    if prediction.marginals is not None:
        columns.append([_digits(p) for p in prediction.marginals])
    lines = map(separator.join, zip(*columns, strict=True))
    return header + "".join(line + "\n" for line in lines) + "\n"


def classified_line(prediction: Prediction) -> str:
    """A sentence and its label, ``words<TAB>label``; with n-best ``<TAB>label p`` for each."""
    cells = [" ".join(prediction.tokens)]
    if prediction.nbest is None:
        cells += prediction.labels
    else:
        cells += [f"{x.labels[0]} {_digits(x.probability)}" for x in prediction.nbest]
    if prediction.marginals is not None:
        cells += [_digits(p) for p in prediction.marginals]
    return "\t".join(cells) + "\n"


def json_line(prediction: Prediction) -> str:
    """A sentence as one JSON object on one line."""
    value = {key: part for key, part in asdict(prediction).items() if part is not None}
    return json.dumps(value, ensure_ascii=False) + "\n"


def _digits(probability: float) -> str:
    return f"{probability:.4g}"


@contextmanager
def open_output(path: str) -> Iterator[IO[str]]:
    """A text file that appears under its name only when it is complete; ``-`` is standard output.

    The folder is made if it is missing; NcrfError names a file that cannot be written.
    """
    if path == "-":
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # whatever the locale says
        yield sys.stdout
        sys.stdout.flush()
        return
    with replacing(path) as file:
        yield file


def check_output(raw: str, output: str, model_dir: str, *, option: str = "decode_dir=") -> None:
    """Refuse to write the output over the input, over the model, or to a folder.

    ``option`` is how the user named the output.
    """
    if "-" not in (raw, output) and os.path.realpath(raw) == os.path.realpath(output):
        raise InputError(f"{option}{output} is the input itself", remedy="name another file")
    if output == "-":
        return
    if output.endswith(("/", os.sep)) or os.path.isdir(output):
        raise InputError(f"{option}{output} is a folder", remedy="name a file")
    if os.path.dirname(os.path.realpath(output)) == os.path.realpath(model_dir):
        raise InputError(
            f"{option}{output} is inside the model folder", remedy="name a file elsewhere"
        )
