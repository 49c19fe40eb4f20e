"""The figures of scripts/bench.py as Markdown: a line on the machine, and a table for each part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Row = Sequence[str]


def sections(results: dict[str, Any]) -> Iterator[str]:
    """The parts of the report, in order."""
    yield _machine(results["machine"], results["settings"])
    yield _corpus(results["corpus"])
    if "training" in results:
        yield _training(results["training"], results["settings"]["repeats"])
    if "decoding" in results:
        yield _decoding(results["decoding"], results["settings"]["repeats"])
    if "profile" in results:
        size = results["profile"]["batch_size"]
        train, raw = results["corpus"]["train"], results["corpus"]["raw"]
        epochs = results["settings"]["epochs"]
        batches = -(-train["sentences"] // size) * epochs
        title = f"Training by stage, batch {size}, one thread"
        yield _profile(title, results["profile"]["train"], train["tokens"] * epochs, batches)
        title = "Decoding by stage, the best labeling, one thread"
        yield _profile(title, results["profile"]["decode"], raw["tokens"], None)
    if "latency" in results:
        yield _latency(results["latency"])
    if "scaling" in results:
        yield _scaling(results["scaling"])


def table(title: str, header: Row, rows: Sequence[Row], notes: Sequence[str] = ()) -> str:
    """A Markdown table whose columns line up, with its title above and notes below."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Row) -> str:
        padded = [cells[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return f"| {' | '.join(padded)} |"

    rule = [f":{'-' * (widths[0] - 1)}", *(f"{'-' * (width - 1)}:" for width in widths[1:])]
    lines = [f"{title}:", "", line(header), line(rule), *map(line, rows)]
    return "\n".join([*lines, *(f"\n{note}" for note in notes)])


def _machine(machine: dict[str, Any], settings: dict[str, Any]) -> str:
    threads = settings["threads"] or "each program's own choice"
    load, at_end = machine["load"][0], machine["load_at_end"][0]
    return (
        f"{machine['date']}, {machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_gb']} GB; Python {machine['python']}, torch {machine['torch']}, "
        f"ncrf at {machine['commit']}; threads: {threads} "
        f"(OMP_NUM_THREADS {machine['OMP_NUM_THREADS'] or 'unset'}); "
        f"load {load} at the start, {at_end} at the end"
    )


def _corpus(corpus: dict[str, Any]) -> str:
    parts = [(name, found) for name, found in corpus.items() if isinstance(found, dict)]
    keys = ("sentences", "tokens", "types", "longest")
    rows = []
    for name, found in parts:
        entities = sum(found["entities"].values())
        rows.append([name, *(f"{found[key]:,}" for key in keys), f"{entities:,}"])
    header = ["part", "sentences", "words", "distinct", "longest", "entities"]
    return table(f"Corpus ({corpus['vectors']:,} vectors)", header, rows)


def _training(measured: list[dict[str, Any]], repeats: int) -> str:
    header = ["batch", "", "sentences/s", "words/s", "s an epoch", "s in all", "peak MB", "dev F1"]
    rows = []
    for found in measured:
        for name, side in found["sides"].items():
            score = "-" if side["dev_f1"] is None else f"{100 * side['dev_f1']:.1f}"
            rows.append([str(found["batch_size"]), name, *_figures(side), score])
        if "ratios" in found:
            rows.append([str(found["batch_size"]), "ratio", *_ratios(found["ratios"]), ""])
    return table(
        f"Training, {measured[0]['sentences']:,} sentences, {_runs(repeats)}", header, rows
    )


def _decoding(measured: list[dict[str, Any]], repeats: int) -> str:
    header = ["best", "", "sentences/s", "words/s", "s file to file", "s in all", "peak MB"]
    rows: list[Row] = []
    notes: dict[str, None] = {}
    for found in measured:
        best = str(found["nbest"] or 1)
        for name, side in found["sides"].items():
            rows.append([best, name, *_figures(side)])
            if side["note"]:
                notes[f"{name}, {best} best: {side['note']}."] = None
        if "ratios" in found:
            rows.append([best, "ratio", *_ratios(found["ratios"])])
    title = f"Decoding, {measured[0]['sentences']:,} sentences, {_runs(repeats)}"
    return table(title, header, rows, list(notes))


def _runs(repeats: int) -> str:
    return "one run" if repeats == 1 else f"medians of {repeats}, in turn"


def _figures(side: dict[str, Any]) -> list[str]:
    return [
        f"{side['sentences_per_second']:,.0f}",
        f"{side['tokens_per_second']:,.0f}",
        f"{side['seconds']:.2f}",
        f"{side['process_seconds']:.1f}",
        f"{side['peak_mb']:,.0f}",
    ]


def _ratios(ratios: dict[str, float]) -> list[str]:
    speed = f"{ratios['speed']:.1f} ×"
    return [speed, speed, speed, f"{ratios['process']:.1f} ×", f"{ratios['memory']:.2f} ×"]


def _profile(title: str, found: dict[str, Any], tokens: int, batches: int | None) -> str:
    header = ["stage", "s", "share", "µs a word", *(["ms a batch"] if batches else [])]
    total = found["seconds"]

    def row(stage: str, seconds: float) -> list[str]:
        cells = [stage, f"{seconds:.3f}", f"{100 * seconds / total:.1f} %"]
        cells.append(f"{1e6 * seconds / tokens:.2f}")
        return [*cells, *([f"{1e3 * seconds / batches:.3f}"] if batches else [])]

    rows = [row(stage, seconds) for stage, seconds in found["steps"].items()]
    rows.append(row("all", total))
    rows.append(row("the limit", found["limit_ns_per_token"] * tokens / 1e9))
    before = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in found["loading"].items())
    notes = [f"Before that: {before}."]
    aside = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in found["aside"].items())
    if aside:
        notes.append(f"In other threads, at the same time: {aside}.")
    if found["lost"]:
        notes.append(f"Not found, so counted as the rest: {', '.join(found['lost'])}.")
    return table(title, header, rows, notes)


def _latency(found: dict[str, Any]) -> str:
    header = ["one sentence", "median ms", "95 % within ms", "first call ms", "load s"]
    cells = [f"{found['words']} words, {found['calls']} calls"]
    cells += [f"{found[key]:.2f}" for key in ("median_ms", "p95_ms", "first_ms", "load_seconds")]
    return table(f"Latency, threads: {found['threads']}", header, [cells])


def _scaling(found: dict[str, Any]) -> str:
    header = ["size", "sentences", "words", "distinct", "s an epoch", "words/s", "training MB",
              "s decoding", "words/s", "decoding MB"]  # fmt: skip
    rows = []
    for size in found["sizes"]:
        cells = [f"{size['scale']} ×"]
        cells += [f"{size[key]:,}" for key in ("sentences", "tokens", "types")]
        for side in (size["training"], size["decoding"]):
            cells += [f"{side['seconds']:.1f}", f"{side['tokens_per_second']:,.0f}"]
            cells.append(f"{side['peak_mb']:,.0f}")
        rows.append(cells)
    notes = []
    if found["memory_per_token"]:
        slopes = found["memory_per_token"]
        notes.append(
            f"Each further word adds {slopes['training']:.0f} bytes to the peak of training and "
            f"{slopes['decoding']:.1f} to that of decoding."
        )
    return table(f"Scaling, batch {found['batch_size']}, one run", header, rows, notes)
