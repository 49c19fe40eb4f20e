"""``ncrf report``: error analysis of a model on a labelled file."""

from __future__ import annotations

import argparse
import os

from ncrf.cli.corpus_options import add_key_options, given_keys, parsed
from ncrf.errors import InputError

STANDARD_INPUT = "-"
KEYS = (
    "columns",
    "column_separator",
    "comment_prefix",
    "file_format",
    "label_column",
    "constraints",
    "decoder",
    "mbr_threshold",
    "score_policy",
    "word_emb_dir",
    "vector_cache",
    "decode_batch_tokens",
    "threads",
    "gpu",
    "plugins",
)

_COUNTED = """\
Entities: conlleval's scores, boundary against type errors, confusion of types, scores by length and
by in- and out-of-vocabulary words, calibration, the most frequent errors. Plain labels: accuracy
instead, and the labels that are confused. The file is read as the model's config says, unless keys
say otherwise; docs/error-analysis.md says what each figure counts."""


def report(arguments: list[str]) -> int:
    """Label a file with a model and say, in Markdown, what is wrong and how often."""
    parser = argparse.ArgumentParser(
        prog="ncrf report", description=report.__doc__, epilog=_COUNTED
    )
    parser.add_argument("model", metavar="MODEL", help="a model folder")
    parser.add_argument("file", metavar="FILE", help="a labelled file; may end in .gz; - is stdin")
    parser.add_argument(
        "--train", metavar="FILE", help="the training corpus, to look words up in (the model's own)"
    )
    parser.add_argument(
        "--ignore_case",
        action="store_true",
        help="a training word counts in any case, as in Ma and Hovy 2016",
    )
    parser.add_argument("--out", metavar="FILE", default="-", help="instead of standard output")
    parser.add_argument("--json", action="store_true", help="the same numbers as JSON")
    parser.add_argument(
        "--top", type=int, default=20, metavar="N", help="how many of the most frequent errors (20)"
    )
    add_key_options(parser, KEYS)
    options = parsed(parser, arguments)
    if options.top < 0:
        parser.error(f"--top {options.top}: expected 0 or more")
    # Threads that wait for each other asleep save a machine that others use as well.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    return _report(options)


def _report(options: argparse.Namespace) -> int:
    import json

    from ncrf.config import load_config

    files = {"load_model_dir": options.model, "raw_dir": STANDARD_INPUT}
    config = load_config({**given_keys(options, KEYS), **files, "status": "decode"})
    for path in (options.file, options.train):
        if path not in (None, STANDARD_INPUT) and not os.path.exists(path):
            raise InputError("no such file", file=path, remedy="check the path")
    import torch

    from ncrf.decode.analysis import analyze_file
    from ncrf.decode.load import load_predictor
    from ncrf.decode.writers import check_output, open_output
    from ncrf.evaluate.analysis_json import analysis_json
    from ncrf.evaluate.analysis_report import report_markdown

    model = config.files.load_model_dir or options.model
    for path in filter(None, (options.file, options.train)):
        check_output(path, options.out, model, option="--out ")
    torch.set_num_threads(config.run.threads or len(os.sched_getaffinity(0)))
    analysis = analyze_file(
        load_predictor(model, config),
        options.file,
        train=options.train,
        ignore_case=options.ignore_case,
        top=options.top,
    )
    with open_output(options.out) as file:
        if options.json:
            value = {"model": options.model, **analysis_json(analysis)}
            file.write(json.dumps(value, ensure_ascii=False, indent=1) + "\n")
        else:
            file.write(report_markdown(analysis, options.model))
    return 0
