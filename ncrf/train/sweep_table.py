"""The table of a sweep: mean and standard deviation over the seeds of each row, as Markdown."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ncrf.train.sweep_grid import row_name
from ncrf.train.sweep_results import Record

_HEAD = ("config", "settings", "n", "dev {}", "best", "worst", "test {}", "best", "worst")
_TAIL = ("best epoch", "training s", "wall s")
_NOTE = """\
{} × 100 as conlleval prints it: mean ± sample standard deviation (n − 1) over the n seeds, then the
best and the worst seed of each corpus. Seconds are means: of the epochs' steps, and of the whole
process where the training was a single one."""


def table(records: Iterable[Record], *, title: str) -> str:
    """The Markdown page of a sweep's records: one line for each row, in the order they came."""
    records = list(records)
    metric = "accuracy" if records and all(map(_is_accuracy, records)) else "F1"
    rows: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        rows.setdefault((record["config"], row_name(record["settings"])), []).append(record)
    head = [cell.format(metric) for cell in (*_HEAD, *_TAIL)]
    lines = [_line(head), "|" + "---|" * len(head)]
    lines += [_line(_cells(config, name, same)) for (config, name), same in rows.items()]
    note = _NOTE.format(metric[:1].upper() + metric[1:])
    machines = sorted({record["machine"] for record in records if record.get("machine")})
    versions = sorted({str(record.get("version")) for record in records})
    note += f"\nncrf {', '.join(versions)}." + "".join(f" Machine: {m}." for m in machines)
    return f"# {title}\n\n" + "\n".join(lines) + f"\n\n{note}\n"


def outcome_text(record: Record) -> str:
    """A finished run in one line, without its name."""
    parts = [
        f"{name} {percent(score_of(record[name]))}" for name in ("dev", "test") if record[name]
    ]
    return ", ".join(
        [
            *parts,
            f"epoch {record['best_epoch']} of {record['epochs']}",
            f"{record['seconds']:.0f} s",
        ]
    )


def score_of(scores: Mapping[str, float]) -> float:
    """The one score of a corpus that counts: F1, which for plain labels is the accuracy."""
    return scores["f1"]


def percent(share: float) -> str:
    """A share as conlleval prints it."""
    return f"{100 * share:.2f}"


def mean_and_deviation(shares: Sequence[float]) -> str:
    """``91.22 ± 0.13``, in percent; one number has no deviation."""
    mean = percent(math.fsum(shares) / len(shares))
    return f"{mean} ± {percent(statistics.stdev(shares))}" if len(shares) > 1 else mean


def _cells(config: str, name: str, records: Sequence[Record]) -> list[str]:
    return [
        config,
        name or "as it is",
        str(len(records)),
        *_corpus_cells([r["dev"] for r in records]),
        *_corpus_cells([r["test"] for r in records]),
        f"{_mean(r['best_epoch'] for r in records):.1f} of {_epochs(records)}",
        f"{_mean(r['seconds'] for r in records):.0f}",
        _wall(records),
    ]


def _corpus_cells(scores: Sequence[Mapping[str, float] | None]) -> list[str]:
    """Mean, best and worst; nothing where a run has no score of the corpus."""
    shares = [score_of(score) for score in scores if score]
    if len(shares) < len(scores):
        return ["-", "-", "-"]
    return [mean_and_deviation(shares), percent(max(shares)), percent(min(shares))]


def _epochs(records: Sequence[Record]) -> str:
    low, high = min(r["epochs"] for r in records), max(r["epochs"] for r in records)
    return str(low) if low == high else f"{low}–{high}"


def _wall(records: Sequence[Record]) -> str:
    known = [r["wall_seconds"] for r in records if r.get("wall_seconds") is not None]
    return f"{_mean(known):.0f}" if known else "-"


def _mean(numbers: Iterable[float]) -> float:
    return statistics.fmean(numbers)


def _is_accuracy(record: Record) -> bool:
    scores: list[dict[str, Any]] = [s for s in (record["dev"], record["test"]) if s]
    return bool(scores) and all(
        s["precision"] == s["recall"] == s["f1"] == s["accuracy"] for s in scores
    )


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
