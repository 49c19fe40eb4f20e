"""The report of ``ncrf check`` as lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ncrf.data.column_layout import described
from ncrf.data.inspection import FileReport
from ncrf.data.vectors import Coverage

_LABEL_WIDTH = 12
_LISTED = 20  # types or labels, unless all are asked for
_WORD_WIDTH = 60


def report_lines(
    report: FileReport, first: FileReport | None = None, *, everything: bool = False
) -> list[str]:
    """A file's report; ``first`` is that of the first file, None for itself.

    ``everything`` lists all types and labels, however many.
    """
    listed = None if everything else _LISTED
    rows = [
        ("sentences", _counts(report)),
        ("columns", _columns(report, first)),
        ("scheme", _scheme(report, first)),
        *_labels(report, listed),
        *_partial(report),
        *_ill_formed(report),
        *_duplicates(report, everything),
        *(_comparison(report, listed) if first is not None else ()),
        ("longest", _longest(report)),
    ]
    return [report.file, *(f"  {name:<{_LABEL_WIDTH}}{text}" for name, text in rows)]


def coverage_lines(path: str, found: Iterable[tuple[FileReport, Coverage]]) -> list[str]:
    """How many of the words of each file a vector file has, and warnings where they are few."""
    lines = [f"vectors {path}"]
    for report, coverage in found:
        lines.append(f"  {report.file}")
        lines += [f"    {line}" for line in coverage.lines()]
        if warning := coverage.warning():
            lines.append(f"    warning: {warning}")
    return lines


def _counts(report: FileReport) -> str:
    boundaries = f" + {report.boundaries:,} -DOCSTART-" if report.boundaries else ""
    return f"{report.sentences:,}{boundaries}, tokens {report.tokens:,}"


def _columns(report: FileReport, first: FileReport | None) -> str:
    if report.format is None:
        return "none"
    text = described(report.format)
    if first is not None and first.format and first.format.features != report.format.features:
        text += f"; the first file has {','.join(first.format.columns)}"
    return text


def _scheme(report: FileReport, first: FileReport | None) -> str:
    if report.scheme_error is not None:
        return f"cannot be told: {report.scheme_error}"
    if report.scheme is None:
        return report.scheme_source
    text = f"{report.scheme} ({report.scheme_source})"
    if first is not None and first.scheme and first.scheme != report.scheme:
        text += f"; the first file is {first.scheme}"
    return text


def _labels(report: FileReport, listed: int | None) -> list[tuple[str, str]]:
    """Entities by type; labels where they mark no spans."""
    if not report.labels:
        return []
    if report.ill_formed is not None:
        return [("entities", f"{report.entities.total():,}{_tally(report.entities, listed)}")]
    return [("labels", f"{len(report.labels):,}{_tally(report.labels, listed)}")]


def _partial(report: FileReport) -> list[tuple[str, str]]:
    """How many labels stand for several; no row where none does."""
    labels, sentences = report.partial, report.partial_sentences
    if not labels:
        return []
    text = f"{labels:,} label{'s' * (labels != 1)} known in part"
    return [("partial", f"{text}, in {sentences:,} sentence{'s' * (sentences != 1)}")]


def _tally(counts: Counter[str], listed: int | None) -> str:
    """``: PER 6,600, LOC 7,140, ...``, the most frequent first; nothing for bare labels."""
    if set(counts) <= {""}:
        return ""
    parts = [f"{name or '(no type)'} {count:,}" for name, count in counts.most_common(listed)]
    return ": " + ", ".join(parts) + _more(len(counts) - len(parts))


def _more(left: int) -> str:
    return f" and {left:,} more" if left > 0 else ""


def _ill_formed(report: FileReport) -> list[tuple[str, str]]:
    """The count, then a row for each place that was kept."""
    found = report.ill_formed
    if found is None:
        return []
    if not found.sentences:
        return [("ill-formed", "none")]
    rows = [("", f"{report.file}:{line}: {reason}") for line, reason in found.places.first]
    left = found.places.count - len(rows)
    if left:
        rows.append(("", f"... and {left:,} more (--all)"))
    return [("ill-formed", str(found)), *rows]


def _duplicates(report: FileReport, everything: bool) -> list[tuple[str, str]]:
    """Sentences that stand in this file before, and in each earlier one; all: a row for each."""
    kinds = [("stand in this file before", report.repeated)]
    kinds += [(f"are in {file}", found) for file, found in report.shared.items()]
    rows: list[tuple[str, str]] = []
    for what, found in kinds:
        count = f"{found.count:,} ({100 * found.count / report.sentences:.1f} %)"
        text = f"{count if found.count else 'none'} {what}"
        if found.first and not everything:
            places = ", ".join(f"line {line} ({where})" for line, where in found.first)
            text += f": {places}{_more(found.count - len(found.first))}"
        rows.append(("" if rows else "duplicates", text))
        if everything:
            rows += [("", f"{report.file}:{line}: {where}") for line, where in found.first]
    return rows


def _comparison(report: FileReport, listed: int | None) -> list[tuple[str, str]]:
    """What a later file has that the first one lacks: labels, words."""
    rows = []
    if report.labels:
        new = sorted(report.new_labels.items(), key=lambda item: -item[1].count)[:listed]
        texts = [f"{label} {found.count:,} (line {found.first[0][0]})" for label, found in new]
        text = ", ".join(texts) + _more(len(report.new_labels) - len(texts))
        rows.append(("new labels", text or "none"))
    rows.append(("new words", _new(report.new_words, len(report.words), report.tokens)))
    if report.new_normalized is not None:
        types, tokens = report.new_normalized
        rows.append(("", f"{types:,} types, {tokens:,} tokens with {report.normalization}"))
    return rows


def _new(new: tuple[int, int], types: int, tokens: int) -> str:
    shares = (100 * new[0] / max(types, 1), 100 * new[1] / max(tokens, 1))
    return (
        f"{new[0]:,} of {types:,} types ({shares[0]:.1f} %), "
        f"{new[1]:,} of {tokens:,} tokens ({shares[1]:.1f} %)"
    )


def _longest(report: FileReport) -> str:
    sentence, word = report.longest_sentence, report.longest_word
    text = word.text if len(word.text) <= _WORD_WIDTH else f"{word.text[: _WORD_WIDTH - 3]}..."
    return (
        f"sentence {sentence.length:,} words (line {sentence.line}), "
        f"word {word.length:,} characters (line {word.line}): {text}"
    )
