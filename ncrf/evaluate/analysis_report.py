"""An error analysis as people read it: Markdown, a section for each way of counting."""

from __future__ import annotations

from collections.abc import Mapping

from ncrf.evaluate.analysis import Analysis
from ncrf.evaluate.calibration import Reliability
from ncrf.evaluate.confusion import Confused, Confusion
from ncrf.evaluate.entity_errors import KINDS, MISSED, SPURIOUS, EntityErrors
from ncrf.evaluate.frequent_errors import Example, FrequentError, Mention
from ncrf.evaluate.markdown import NOTHING, clipped, code, name, table
from ncrf.evaluate.report import percent, percentages
from ncrf.evaluate.spans import TypeScore

_SAID = {
    "right": "right",
    "type": "wrong type",
    "boundary": "wrong boundaries",
    "both": "wrong boundaries and type",
    "missed": "missed",
    "spurious": "spurious",
    "label": "wrong label",
}
_SCORE_HEADER = ("gold", "predicted", "right", "precision", "recall", "F1")
_CLASSES_OF_WORDS = (
    "IV words are in the training corpus and have a pretrained vector; OOTV words are not in the",
    "training corpus, OOEV words have no vector, OOBV words have neither.",
)
_CLASSES_OF_ENTITIES = (
    "An entity is OOBV if one of its words is not in the training corpus and one, the same or",
    "another, has no vector; OOTV if only the former holds, OOEV if only the latter, IV if neither",
    "does (Ma and Hovy 2016). Gold entities count by their own words, predicted ones by theirs.",
)
_WIDEST = 20  # names in a matrix; more are shown as a list of pairs
_SOME = 10  # labels in a sentence


def report_markdown(analysis: Analysis, model: str | None = None) -> str:
    """The whole report; ``model`` names the model in its heading."""
    subject = f"Errors of {code(model)}" if model else "Errors"
    heading = f"# {subject} on {code(analysis.file or 'the sentences given')}"
    sections = [[heading], _overall(analysis)]
    if analysis.errors is not None:
        sections += [_kinds(analysis.errors), _by_length(analysis)]
    sections += [_confusion(analysis), _by_class(analysis)]
    sections += [_calibration(analysis), _by_threshold(analysis), _frequent(analysis)]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def reliability_lines(title: str, table_: Reliability) -> list[str]:
    """A reliability table; its last line has the expected calibration error."""
    rows = [
        (f"{x.low:.1f}–{x.high:.1f}", f"{x.count:,}", f"{x.mean:.3f}", f"{x.right:.3f}")
        for x in table_.bins
    ]
    lines = table(("probability", "count", "mean", "right"), rows)
    gap = f"Expected calibration error: {table_.error:.3f}"
    return [f"{title} ({table_.count:,}):", "", *lines, "", gap]


def _overall(analysis: Analysis) -> list[str]:
    score = analysis.score
    counted = f"{score.sentences:,} sentences"
    if analysis.task != "sentences":
        counted += f", {score.tokens:,} tokens"
    everything = TypeScore(score.gold, score.predicted, score.correct)
    scores = {"all": everything} if analysis.errors is not None else {}
    named = {name(label): row for label, row in score.per_type.items()}
    what = {"entities": "type", "labels": "label", "sentences": "label"}[analysis.task]
    accuracy = percent(score.correct_tokens, score.tokens)
    share = f"{accuracy:.2f} % ({score.correct_tokens:,} of {score.tokens:,})"
    return [
        "## Scores",
        "",
        f"{counted}; right labels: {share}.",
        *_unknown(analysis.unknown_labels),
        "",
        *table((what, *_SCORE_HEADER), [_scored(*row) for row in {**scores, **named}.items()]),
    ]


def _unknown(labels: Mapping[str, int]) -> list[str]:
    if not labels:
        return []
    shown = ", ".join(f"{name(label)} ({n:,})" for label, n in list(labels.items())[:_SOME])
    more = f" and {len(labels) - _SOME:,} more" * (len(labels) > _SOME)
    return ["", f"Labels in the file that the model does not have, always wrong: {shown}{more}."]


def _scored(title: str, row: TypeScore) -> list[str]:
    counts = row.support, row.predicted, row.correct
    return [title, *(f"{n:,}" for n in counts), *(f"{x:.2f}" for x in percentages(*counts))]


def _kinds(errors: EntityErrors) -> list[str]:
    of = {kind: errors.of_kind(kind) for kind in KINDS}
    gold = sum(count for kind, count in of.items() if kind != SPURIOUS)
    predicted = sum(count for kind, count in of.items() if kind != MISSED)

    def share(kind: str, whole: int, other: str) -> str:
        return NOTHING if kind == other else f"{percent(of[kind], whole):.1f}"

    rows = [
        (_SAID[k], f"{of[k]:,}", share(k, gold, SPURIOUS), share(k, predicted, MISSED))
        for k in KINDS
    ]
    by_type = [
        (name(label), *(f"{errors.counts[kind, label]:,}" for kind in KINDS))
        for label in errors.types
    ]
    lines = [
        "## Boundaries and types",
        "",
        "Each gold and each predicted entity is counted once. Those that share words are put in",
        "pairs, the best first: of the same type, then with most words shared, then the first in",
        "the sentence. What is left alone is missed or spurious.",
        "",
        *table(("", "count", "% of gold", "% of predicted"), rows),
        "",
        f"{errors.overlapping[MISSED]:,} of the missed and {errors.overlapping[SPURIOUS]:,} of the "
        "spurious entities share words with an entity",
        "of the other side that is paired with another one.",
    ]
    if len(by_type) < 2:
        return lines
    lines += ["", "By the type in gold, of spurious ones the predicted type:", ""]
    return lines + table(("type", *(_SAID[kind] for kind in KINDS)), by_type)


def _by_length(analysis: Analysis) -> list[str]:
    return [
        "## By length of the entity",
        "",
        "In words. Gold entities count by their own length, predicted ones by theirs.",
        "",
        *table(("words", *_SCORE_HEADER), [_scored(*row) for row in analysis.lengths.items()]),
    ]


def _confusion(analysis: Analysis) -> list[str]:
    confusion, names = analysis.confusion, analysis.confusion.names
    if len(names) < 2:
        return []
    entities = analysis.task == "entities"
    lines = ["## Confusion of types" if entities else "## Confusion of labels", ""]
    if entities:
        lines += [
            "Gold entities (rows) and predicted entities (columns) of exactly the same words; the",
            "last row and column count those whose words are no entity of the other side.",
            "",
        ]
    if len(names) <= _WIDEST and analysis.task != "labels":
        return lines + _matrix(confusion, entities=entities)
    mistakes = confusion.mistakes()
    if not mistakes:
        return []
    rows = [(name(x.gold), name(x.predicted), f"{count:,}") for x, count in mistakes[:_WIDEST]]
    if len(mistakes) > len(rows):
        lines += [f"The most frequent of {len(mistakes):,} pairs:", ""]
    return lines + table(("gold", "predicted", "count"), rows, words=2)


def _matrix(confusion: Confusion, *, entities: bool) -> list[str]:
    names: list[str | None] = [*confusion.names, *([None] if entities else [])]
    titles = [name(x) if x is not None else "no such entity" for x in names]
    rows = []
    for gold, title in zip(names, titles, strict=True):
        counts = [confusion.counts[Confused(gold, predicted)] for predicted in names]
        cells = [f"{count:,}" for count in counts]
        rows.append((title, *(cells if gold is not None else [*cells[:-1], ""])))
    return table(("gold \\ predicted", *titles), rows)


def _by_class(analysis: Analysis) -> list[str]:
    if not analysis.classes:
        return []
    entities = analysis.task == "entities"
    lines = ["## By vocabulary", ""]
    if analysis.class_source:
        lines += [analysis.class_source, ""]
    lines += [*_CLASSES_OF_WORDS, *(_CLASSES_OF_ENTITIES if entities else ()), ""]
    if entities:
        rows = [_scored(*row) for row in analysis.classes.items()]
        return lines + table(("class", *_SCORE_HEADER), rows)
    rows = [
        [own, f"{x.support:,}", f"{x.correct:,}", f"{percent(x.correct, x.support):.2f}"]
        for own, x in analysis.classes.items()
    ]
    return lines + table(("class", "words", "right", "accuracy"), rows)


def _calibration(analysis: Analysis) -> list[str]:
    lines: list[str] = []
    tables = {
        "Predicted entities": analysis.entity_calibration,
        "Predicted labels": analysis.label_calibration,
    }
    for title, own in tables.items():
        if own is not None:
            lines += ["", *reliability_lines(title, own)]
    if not lines:
        return []
    about = [
        "By the probability that the model gives: how many there are, their mean probability, and",
        "the share that is right. A calibrated model has the two alike.",
    ]
    return ["## Calibration", "", *about, *lines]


def _by_threshold(analysis: Analysis) -> list[str]:
    if not analysis.thresholds:
        return []
    rows = [_scored(*row) for row in analysis.thresholds.items()]
    return [
        "## By threshold",
        "",
        "With `decoder=mbr`, which predicts entities whose probability is above `mbr_threshold`:",
        "",
        *table(("mbr_threshold", *_SCORE_HEADER), rows),
    ]


def _frequent(analysis: Analysis) -> list[str]:
    if not analysis.frequent:
        return []
    shown, distinct = len(analysis.frequent), analysis.distinct_errors
    lines = ["## Most frequent errors", ""]
    if distinct > shown:
        lines += [f"{shown:,} of {distinct:,} different ones:", ""]
    rows = [_error(error) for error in analysis.frequent]
    return lines + table(("gold", "predicted", "error", "example", "count"), rows, words=4)


def _error(error: FrequentError) -> list[str]:
    kind, gold, predicted = error.key
    return [
        _mention(gold),
        _mention(predicted),
        _SAID[kind],
        _shown(error.example),
        f"{error.count:,}",
    ]


def _mention(mention: Mention | None) -> str:
    return NOTHING if mention is None else f"{code(mention.text, 60)} {name(mention.label)}"


def _shown(example: Example) -> str:
    text = " ".join(
        part
        for part in (example.before, f"[[{clipped(example.words, 100)}]]", example.after)
        if part
    )
    return f"{example.place} {code(text, 240)}".strip()
