"""The command line: sub-commands, each a few lines that call the library."""

from __future__ import annotations

import io
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from ncrf.errors import ConfigError, NcrfError, printable

_DESCRIPTION = """\
ncrf trains and runs neural sequence labelers that a config file describes.

  python main.py --config CONFIG [--key value ...]  what the file's status says
  ncrf run CONFIG [--key value ...]                 the same
  ncrf train CONFIG [--key value ...]               train a model
  ncrf decode CONFIG [--key value ...]              label a file (raw_dir) with a model
  ncrf evaluate GOLD PREDICTED [options]            score one file against another
  ncrf report MODEL FILE [options]                  error analysis of a model on a labelled file
  ncrf convert --to SCHEME IN OUT [options]         a corpus in another label scheme
  ncrf check FILE ... [options]                     what corpora hold, and what is odd in them
  ncrf info MODEL                                   layers, sizes, labels, scores of a model
  ncrf weights MODEL [--top N]                      transitions and strongest features of a model
  ncrf learn TEMPLATE TRAIN MODEL [options]         train as CRF++'s crf_learn
  ncrf test -m MODEL [options] FILE ...             label as CRF++'s crf_test
  ncrf sweep CONFIG ... [--key a,b,c ...]           train all combinations, with several seeds
  ncrf compare GOLD A B [options]                   is the difference of two systems significant?
  ncrf keys [WORD]                                  the config keys (that have WORD in them)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0 done, 1 failed, 2 wrong input, 130 interrupted."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None:  # closed by the caller: writing is to fail, and not for want of a file
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # whatever the locale says
    status = 0
    try:
        try:
            status = _run(arguments)
        finally:  # also where argparse ends the program
            sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            print(f"ncrf: {error.filename}: {error.strerror}", file=sys.stderr)
            return 1
        _discard_output()
        if not isinstance(error, BrokenPipeError):  # a reader that has had enough is no mistake
            print(f"ncrf: standard output cannot be written: {error.strerror}", file=sys.stderr)
        return status or 1
    return status


def _run(arguments: list[str]) -> int:
    try:
        with _log_to_stderr():
            return _dispatch(arguments)
    except NcrfError as error:
        print(f"ncrf: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("ncrf: interrupted", file=sys.stderr)
        return 130
    except (MemoryError, RuntimeError) as error:
        what = _out_of_memory(error)
        if what is None:
            raise
        print(f"ncrf: {what}", file=sys.stderr)
        return 1


def _out_of_memory(error: Exception) -> str | None:
    """One line for an error that says so, the processor's or a GPU's; None for any other."""
    text = " ".join(str(error).split())
    if not isinstance(error, MemoryError) and not re.search(r"out of memory|allocate memory", text):
        return None
    return f"out of memory (a smaller batch_size or max_batch_tokens may help): {text[:300]}"


def _discard_output() -> None:
    """Let what is still to be written go nowhere, or Python would try it again at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    finally:
        os.close(nowhere)


class _Printable(logging.Formatter):
    """Messages of the log in which a label or a path from a file cannot move the cursor."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The message, line by line as a terminal may show it."""
        return "\n".join(map(printable, super().formatMessage(record).split("\n")))


@contextmanager
def _log_to_stderr() -> Iterator[None]:
    """Show the log of ncrf, and nothing else's, on standard error while a command runs."""
    logger = logging.getLogger("ncrf")
    handler, level = logging.StreamHandler(sys.stderr), logger.level
    handler.setFormatter(_Printable())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_DESCRIPTION)
        return 0 if arguments else 2
    if arguments[0] == "--version":
        return _version()
    if arguments[0] in _OPTIONS_ARE_KEYS and {"-h", "--help"} & set(arguments[1:]):
        from ncrf.cli.run_help import run_help

        print(run_help(arguments[0]))
        return 0
    if arguments[0] in {**_COMMANDS, **_OF_SWEEPS}:
        return _command(arguments[0])(arguments[1:])
    if arguments[0].startswith("-"):
        return _command("run")(arguments)
    remedy = f"one of: {', '.join(_COMMANDS)}; ncrf --help"
    if os.path.isfile(arguments[0]):
        remedy = f"ncrf run {arguments[0]}"
    raise ConfigError(f"{arguments[0]}: no such command", remedy=remedy)


def _version() -> int:
    from ncrf import __version__

    print(f"ncrf {__version__}")
    return 0


_COMMANDS: dict[str, str] = {
    "run": "ncrf.cli.run:run",
    "train": "ncrf.cli.run:train",
    "decode": "ncrf.cli.run:decode",
    "evaluate": "ncrf.cli.evaluate:evaluate",
    "report": "ncrf.cli.report:report",
    "convert": "ncrf.cli.convert:convert",
    "check": "ncrf.cli.check:check",
    "info": "ncrf.cli.info:info",
    "weights": "ncrf.cli.weights:weights",
    "learn": "ncrf.cli.crfpp:learn",
    "test": "ncrf.cli.crfpp:test",
    "keys": "ncrf.cli.keys:keys",
    "sweep": "ncrf.cli.sweep:sweep",
    "compare": "ncrf.cli.compare:compare",
}
_OF_SWEEPS = {"record-test": "ncrf.cli.child:record_test"}  # for the processes that they start


_OPTIONS_ARE_KEYS = ("run", "train", "decode")


def _command(name: str) -> Callable[[list[str]], int]:
    """Import one command; a command line pays for no other."""
    module, function = {**_COMMANDS, **_OF_SWEEPS}[name].split(":")
    command: Callable[[list[str]], int] = getattr(import_module(module), function)
    return command
