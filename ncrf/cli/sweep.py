"""``ncrf sweep``: train configs with all combinations of values, and seeds; tell the means."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ncrf.config.keys import canonical
from ncrf.config.readers import COMMAND_LINE, Entry, read_command_line
from ncrf.config.values import BadValueError, parse_boolean, parse_integer
from ncrf.errors import ConfigError

if TYPE_CHECKING:
    from ncrf.train.sweep import Outcome
    from ncrf.train.sweep_grid import Run

_HELP = """\
usage: ncrf sweep CONFIG [CONFIG ...] [--key a,b,c ...] [options]

Train every config with all combinations of the values given for its keys, each with several seeds,
and print and write mean and standard deviation. A second call trains what is missing.

  --key a,b,c     values of a config key; texts, paths and lists are not parted at
                  commas: repeat the key (--word_emb_dir a.txt --word_emb_dir b.txt)
  --seeds 5       so many seeds: the config's own, the next one, ...; --seeds 1,2,7: these ones
                  (--seeds 7, is seed 7 alone). Without: the config's seed
  --jobs N        trainings at a time, each with one thread unless the config says otherwise (1)
  --out FOLDER    where a folder for each config is made (runs/sweep)
  --retrain       train anew what was trained with other values or files under the same name
  --report-only   train nothing, print and write the table

In FOLDER/CONFIG'S NAME are results.jsonl, with a line for each finished run, results.md, the
model folders and their logs. docs/sweeps.md says more.
"""
_OPTIONS = ("seeds", "jobs", "out", "retrain", "report_only")


def sweep(arguments: list[str]) -> int:
    """Train a grid of runs and tell their means; 1 if one has failed."""
    if {"-h", "--help"} & set(arguments):
        print(_HELP)
        return 0
    first = next((i for i, word in enumerate(arguments) if word.startswith("--")), len(arguments))
    configs = arguments[:first]
    if not configs:
        raise ConfigError("no config is named", remedy="ncrf sweep CONFIG ...; ncrf sweep --help")
    entries = read_command_line(arguments[first:])
    options = {canonical(e.name): e.raw for e in entries if canonical(e.name) in _OPTIONS}
    keys = [entry for entry in entries if canonical(entry.name) not in _OPTIONS]
    return _sweep(configs, keys, options)


def _sweep(configs: list[str], keys: list[Entry], options: Mapping[str, str]) -> int:
    jobs = _jobs(options.get("jobs", "1"))
    retrain, only = (_is_on(options, name) for name in ("retrain", "report_only"))
    from ncrf.train.sweep_grid import plan

    out = Path(options.get("out") or "runs/sweep")
    runs = plan(configs, keys, options.get("seeds"), out, check_files=not only)
    from ncrf.train.sweep import run_sweep

    report = _Report()
    try:
        if not only:
            run_sweep(runs, jobs=jobs, retrain=retrain, report=report)
    except KeyboardInterrupt:
        _write_tables(runs, out)
        raise
    _write_tables(runs, out)
    return 1 if report.failed else 0


class _Report:
    """Prints a line for every run that ends."""

    failed = 0

    def __call__(self, outcome: Outcome) -> None:
        from ncrf.train.sweep_table import outcome_text

        place, left = outcome.run.model_dir, f"{outcome.left} to do"
        if outcome.record is not None:
            print(f"{place}: {outcome_text(outcome.record)}; {left}", flush=True)
        else:
            self.failed += 1
            what = f"{place}: failed: {outcome.error} ({outcome.run.log}); {left}"
            print(f"ncrf: {what}", file=sys.stderr)


def _write_tables(runs: list[Run], out: Path) -> None:
    """Write the table of each config, and print that of all; nothing where there is nothing."""
    from ncrf.data.output_files import write_file
    from ncrf.train.sweep import current_records
    from ncrf.train.sweep_table import table

    folders = {run.row.folder: run.row.config_file for run in runs}
    found = {folder: current_records(folder, file) for folder, file in folders.items()}
    for folder, records in found.items():
        if records:
            text = table(records, title=f"Sweep of {folders[folder]}")
            write_file(folder / "results.md", text.encode("utf-8"))
    together = [record for records in found.values() for record in records]
    done = {(folder, record["run"]) for folder, records in found.items() for record in records}
    left = [run.name for run in runs if (run.row.folder, run.name) not in done]
    if not together:
        print("no run has finished")
        return
    text = table(
        together, title="Sweep" if len(found) > 1 else f"Sweep of {folders[next(iter(found))]}"
    )
    if len(found) > 1:
        write_file(out / "results.md", text.encode("utf-8"))
    print(f"\n{text}", end="")
    if left:
        more = ", ..." if len(left) > 1 else ""
        print(
            f"ncrf: {len(left)} of {len(runs)} runs are missing: {left[0]}{more}", file=sys.stderr
        )


def _jobs(raw: str) -> int:
    try:
        jobs = parse_integer(raw)
        if jobs < 1:
            raise BadValueError("", "")
    except BadValueError as error:
        raise ConfigError(f"--jobs {raw}", file=COMMAND_LINE, remedy="a number from 1") from error
    return jobs


def _is_on(options: Mapping[str, str], name: str) -> bool:
    try:
        return parse_boolean(options.get(name, "False"))
    except BadValueError as error:
        option = f"--{name.replace('_', '-')}"
        raise ConfigError(
            f"{option} {options[name]}", file=COMMAND_LINE, remedy=f"{option} alone"
        ) from error
