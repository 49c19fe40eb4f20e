"""``ncrf check``: what corpora hold, and what is odd in them."""

from __future__ import annotations

import argparse
import sys

from ncrf.cli.corpus_options import READING, add_key_options, given_keys, parsed
from ncrf.config import Config, load_config
from ncrf.errors import ConfigError, InputError

KEYS = (
    *READING,
    "tag_scheme",
    "partial_labels",
    "sentence_classification",
    "number_normalized",
    "lowercase",
    "word_emb_dir",
    "vector_cache",
)


def check(arguments: list[str]) -> int:
    """Say what corpora hold: counts, scheme, ill-formed labels, duplicates, new words, coverage.

    The first file is taken as the one to train on; the others are compared with it. The exit
    status is 0 if every file can be read and 2 if one cannot.
    """
    parser = argparse.ArgumentParser(prog="ncrf check", description=check.__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="a corpus; - is stdin")
    parser.add_argument("--config", help="take keys, and files if none are named, from a config")
    parser.add_argument("--all", action="store_true", help="show every line, not the first five")
    add_key_options(parser, KEYS)
    options = parsed(parser, arguments)
    config = load_config(options.config or {}, given_keys(options, KEYS), check_files=False)
    # Files of a config are all trained or scored on; of others, only the first need have labels.
    files = [(path, i == 0) for i, path in enumerate(options.files)] or _named_files(config)
    return _inspect(config, files, everything=options.all)


def _named_files(config: Config) -> list[tuple[str, bool]]:
    files = config.files
    if files.train_dir is None:
        raise ConfigError("no file to check", remedy="ncrf check FILE, or a config with train_dir")
    return [(p, True) for p in (files.train_dir, files.dev_dir, files.test_dir) if p is not None]


def _inspect(config: Config, files: list[tuple[str, bool]], *, everything: bool) -> int:
    from ncrf.data.inspection import Inspector, vector_coverage
    from ncrf.data.inspection_report import coverage_lines, report_lines

    inspector = Inspector(config, keep=None if everything else 5)
    reports, errors = [], []
    for path, labelled in files:
        try:
            report = inspector.inspect(path, labelled=labelled)
        except InputError as error:
            errors.append(error)
            continue
        reports.append(report)
        if report.scheme_error is not None:
            errors.append(report.scheme_error)
        first = inspector.first if report is not inspector.first else None
        print("\n".join(report_lines(report, first, everything=everything)), flush=True)
    vectors = config.words.word_emb_dir if config.words.use_word_emb else None
    if vectors is not None and reports:
        try:
            print("\n".join(coverage_lines(vectors, vector_coverage(config, vectors, reports))))
        except InputError as error:
            errors.append(error)
    for problem in errors:
        print(f"ncrf: {problem}", file=sys.stderr)
    return InputError.exit_status if errors else 0
