"""The command line that all scripts prepare_*.py have."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from pathlib import Path

from ncrf.errors import NcrfError


def new_parser(doc: str | None, source: str, target: str) -> argparse.ArgumentParser:
    """A parser of ``SOURCE [TARGET] [--any-version] [--encoding NAME]``.

    ``doc`` is the script's docstring, ``source`` says what SOURCE is, ``target`` is the default
    of TARGET.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", metavar="SOURCE", type=Path, help=source)
    parser.add_argument(
        "target",
        metavar="TARGET",
        type=Path,
        nargs="?",
        default=Path(target),
        help="the folder that the files are put in (default: %(default)s)",
    )
    parser.add_argument(
        "--any-version",
        action="store_true",
        help="only warn where the counts are not the published ones",
    )
    parser.add_argument(
        "--encoding", default="utf-8", help="of the distributed files (default: %(default)s)"
    )
    return parser


def run(prepare: Callable[[argparse.Namespace], None], arguments: argparse.Namespace) -> int:
    """Prepare, with the log on standard error; the exit status is that of ``ncrf``."""
    handler = logging.StreamHandler(sys.stderr)
    loggers = [logging.getLogger(name) for name in ("preparation", "ncrf")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
    loggers[0].setLevel(logging.INFO)
    try:
        "".encode(arguments.encoding)
        prepare(arguments)
    except LookupError:
        print(f"prepare: --encoding {arguments.encoding}: no such encoding", file=sys.stderr)
        return 2
    except NcrfError as error:
        print(f"prepare: {error}", file=sys.stderr)
        return error.exit_status
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)
    return 0
