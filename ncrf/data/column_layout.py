"""What the columns of a corpus file mean: declared with ``columns=``, or seen in its first row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ncrf.data.sentence import ColumnFormat
from ncrf.errors import InputError

WORD, LABEL, SKIPPED = "word", "label", "-"
SEPARATORS = {"auto": None, "tab": "\t", "space": " "}
SEPARATOR_NAMES = {"\t": "tabs", " ": "spaces"}


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature column: its name, its place, and the ``[NAME]`` its cells carry ("" if none)."""

    name: str
    column: int
    prefix: str


@dataclass(frozen=True, slots=True)
class Layout:
    """Where word, label (-1: none) and features stand in the rows of one file."""

    format: ColumnFormat
    word: int
    label: int
    features: tuple[Feature, ...]

    @property
    def width(self) -> int:
        """The number of columns that every row has."""
        return len(self.format.columns)


def parse_columns(columns: str | Sequence[str]) -> tuple[str, ...]:
    """Check a list of columns (or its comma-separated text) and return it in its plain form.

    Raises InputError unless ``word`` stands there exactly once, ``label`` at most once, every
    feature name once, and nothing else but ``-``.
    """
    names = columns.split(",") if isinstance(columns, str) else columns
    plain = tuple(_plain_name(name.strip(), index) for index, name in enumerate(names, 1))
    if WORD not in plain:
        raise _bad_columns("no column is the word")
    times = Counter(plain)
    for name in plain:
        if name != SKIPPED and times[name] > 1:
            raise _bad_columns(f"{name} stands there more than once")
    return plain


def _plain_name(name: str, index: int) -> str:
    if name.lower() in (WORD, LABEL):
        return name.lower()
    if name == SKIPPED or (len(name) > 2 and name[0] == "[" and name[-1] == "]"):
        return name
    raise _bad_columns(f"column {index} is {name!r}")


def _bad_columns(what: str) -> InputError:
    return InputError(
        f"columns: {what}",
        remedy="list word, label, [NAME] for a feature and - for a skipped column, "
        "as in columns=word,[POS],-,label",
    )


def described(form: ColumnFormat) -> str:
    """A layout as reports say it: ``word,[POS],label (tabs)``."""
    separator = SEPARATOR_NAMES.get(form.separator, form.separator.strip())
    return f"{','.join(form.columns)} ({separator})"


def cut(line: str, separator: str) -> list[str]:
    """Split a line into its cells: at every tab, or at runs of U+0020."""
    if separator == "\t":
        return line.split("\t")
    return [cell for cell in line.split(" ") if cell]


def feature_name(cell: str) -> str | None:
    """Return NAME if ``cell`` is of the form ``[NAME]value``, else None."""
    end = cell.find("]")
    return cell[1:end] if cell[:1] == "[" and end > 1 else None


def declared_layout(
    columns: tuple[str, ...], cells: Sequence[str], separator: str, labels_optional: bool
) -> Layout:
    """Settle a file with declared columns by the cells of its first row.

    Where labels are optional and the row is one cell short, the file has no label column. A row
    of any other width is laid out as declared, and its reader finds it at fault.
    """
    if labels_optional and LABEL in columns and len(cells) == len(columns) - 1:
        columns = tuple(name for name in columns if name != LABEL)
    features = []
    for place, name in enumerate(columns):
        if name.startswith("["):
            # A file in NCRF++'s own form may be declared too: then every cell repeats the name.
            prefixed = len(cells) == len(columns) and cells[place].startswith(name)
            features.append(Feature(name[1:-1], place, name if prefixed else ""))
    label = columns.index(LABEL) if LABEL in columns else -1
    form = ColumnFormat(columns, separator)
    return Layout(form, columns.index(WORD), label, tuple(features))


def default_layout(
    cells: Sequence[str], separator: str, labels_optional: bool, known_features: Collection[str]
) -> Layout:
    """Settle a file without declared columns by the cells of its first row.

    The first cell is the word, the last the label, those between are ``[NAME]value``. Where
    labels are optional, a row of one cell has none, and neither has one whose last cell is a
    value of a known feature. Raises InputError, still without file and line, for a row that
    cannot be read this way.
    """
    has_label = len(cells) > 1 or not labels_optional
    if labels_optional and len(cells) > 1:
        has_label = feature_name(cells[-1]) not in known_features
    if has_label and len(cells) == 1:
        raise InputError(
            f"1 column found, {_show(cells)}, expected at least 2 (word and label)",
            remedy="separate word and label by a tab or by spaces",
        )
    features: dict[str, Feature] = {}
    for place in range(1, len(cells) - has_label):
        name = feature_name(cells[place])
        if name is None:
            raise _no_prefix(cells, place, has_label, raw=labels_optional)
        if name in features:
            raise InputError(f"two columns are feature [{name}]", remedy="name them differently")
        features[name] = Feature(name, place, f"[{name}]")
    names = [WORD, *(feature.prefix for feature in features.values()), *[LABEL] * has_label]
    form = ColumnFormat(tuple(names), separator)
    return Layout(form, 0, len(cells) - 1 if has_label else -1, tuple(features.values()))


def _no_prefix(cells: Sequence[str], place: int, has_label: bool, *, raw: bool) -> InputError:
    middle = [
        f"[{feature_name(cell)}]" if feature_name(cell) else SKIPPED
        for cell in cells[1 : len(cells) - has_label]
    ]
    line = ",".join([WORD, *middle, *[LABEL] * has_label])
    remedy = (
        f"say what the columns are, as in columns={line}, where - skips one and [NAME] is a feature"
    )
    if cells[0].startswith("#"):
        remedy = (
            "if this is CoNLL-U, set file_format=conllu; if it is a comment, comment_prefix=#; "
            f"else {remedy}"
        )
    elif raw:
        remedy = f"if a line is a whole sentence, set raw_format=lines; else {remedy}"
    return InputError(
        f"column {place + 1} of {len(cells)}, {_show([cells[place]])}, has no [NAME] prefix",
        remedy=remedy,
    )


def check_row(cells: Sequence[str], layout: Layout) -> None:
    """Raise an InputError, still without file and line, for a row that does not fit ``layout``."""
    if len(cells) != layout.width:
        raise wrong_width(cells, layout.format)
    if not cells[layout.word]:
        raise InputError("the word is empty", remedy="put a word there, or close the sentence")
    if layout.label >= 0 and not cells[layout.label]:
        raise InputError("the label is empty", remedy="give every word a label")


def wrong_width(cells: Sequence[str], form: ColumnFormat) -> InputError:
    """Return the error, still without file and line, for a row that does not fit ``form``."""
    expected = len(form.columns)
    between = "" if expected == 1 else f" separated by {SEPARATOR_NAMES[form.separator]}"
    return InputError(
        f"{_count(len(cells))} found, {_show(cells)}, "
        f"expected {expected} ({', '.join(form.columns)})",
        remedy=f"give every row {_count(expected)}{between}",
    )


def _count(number: int) -> str:
    return f"{number} column" if number == 1 else f"{number} columns"


def _show(cells: Sequence[str], most: int = 8) -> str:
    shown = [repr(cell if len(cell) <= 40 else f"{cell[:37]}...") for cell in cells[:most]]
    return ", ".join([*shown, *["..."] * (len(cells) > most)])
