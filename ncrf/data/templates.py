"""Feature templates: what a classical CRF looks at around a word.

A template file is that of CRF++, one template a line::

    # Unigram: the word, the one before it, both tags
    U00:%x[0,0]
    U01:%x[-1,0]
    U02:%x[-1,1]/%x[0,1]
    # Bigram: the label pair alone, and with the word
    B
    B01:%x[0,0]

``%x[row,column]`` is the cell ``row`` words further on (or back) in the ``column``-th column,
counted from 0, the label column left out. All other text stands for itself. At a word the line
becomes a string, an *attribute*: ``U02:DT/NN``. Attributes of ``U`` lines are joined with the
word's label, those of ``B`` lines with the labels of the word before and of the word itself; each
such pair or triple is a *feature* with a weight. A bare ``U`` is a weight for the label alone, a
bare ``B`` one for the label pair, the transitions. Beyond the ends of a sentence stand ``_B-1``,
``_B-2``, ... (counted back from the first word) and ``_B+1``, ``_B+2``, ... (on from the last).
A ``B`` line says nothing of the first word, which has none before it.

Two lines with the same text but for the macros have their attributes in common, as the same
strings (``U:%x[-1,0]`` and ``U:%x[1,0]``: which words stand beside, not on which side); a word for
which both give the same attribute has it twice. Unlike in CRF++, where the text between two macros
also occurs in the cells (``a/b`` and ``c``, or ``a`` and ``b/c``), the attributes stay distinct.

``%v[row,column]``, which CRF++ does not have, takes a cell such as ``length:0.5`` apart: ``length``
goes into the attribute, and 0.5 is its value at this word (with several, their product) in place
of 1. As in CRFsuite a cell without a colon has the value 1, and ``\\:`` and ``\\\\`` stand for a
colon and a backslash in the name.

Textbook rules (``textbook_templates``) are lists of offsets over one column. There a sentence has
one artificial word at each end, the head and the tail, with labels of their own: so bigram rules
also tell of the first label (after the head) and of the last one (before the tail), and a rule that
looks further than head or tail does not apply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ncrf.data.text_files import open_text
from ncrf.errors import InputError

UNIGRAM = "U"
BIGRAM = "B"
EVERYWHERE, FIRST, LAST = "every", "first", "last"

MOST_ROWS = 1000  # how far a macro may look; each row beyond a sentence is a string of its own
_MACRO = re.compile(r"%(?:([xv])\[([-+]?[0-9]{1,9}),([0-9]{1,9})\])?")
_SHOWN = 12  # characters of a wrong macro in an error


@dataclass(frozen=True)
class Macro:
    """The cell that a macro takes: ``row`` words from the current one; ``valued`` for ``%v``."""

    row: int
    column: int
    valued: bool = False


@dataclass(frozen=True)
class Template:
    """One line of a template file, or one textbook rule.

    ``kind``: U (labels of a word) or B (labels of a word and the one before). ``text``: the literal
    pieces around the macros, one more than there are ``macros``. ``line``: in the template file, 0
    if there is none. ``reach``: how many artificial words there are beyond each end of a sentence,
    None for any number. ``where``: at every word, or at the first or the last one alone.
    """

    kind: str
    text: tuple[str, ...]
    macros: tuple[Macro, ...] = ()
    line: int = 0
    reach: int | None = None
    where: str = EVERYWHERE

    @property
    def shape(self) -> tuple[str, tuple[str, ...]]:
        """What templates must agree in to have their attributes in common."""
        return self.kind, self.text

    def fill(self, cells: Sequence[str]) -> str:
        """The attribute whose macros took ``cells``."""
        pieces = [self.text[0]]
        for cell, text in zip(cells, self.text[1:], strict=True):
            pieces += (cell, text)
        return "".join(pieces)


@dataclass(frozen=True)
class Templates:
    """All templates of a model, in order. ``file`` is None where they came from Python."""

    lines: tuple[Template, ...]
    file: str | None = None

    @property
    def unigram(self) -> list[Template]:
        """Templates of state features."""
        return [template for template in self.lines if template.kind == UNIGRAM]

    @property
    def bigram(self) -> list[Template]:
        """Templates of transition features that look at the observations; no bare ``B``."""
        return [t for t in self.lines if t.kind == BIGRAM and t.macros]

    @property
    def transitions(self) -> bool:
        """Whether there is a bare ``B`` (``B01`` too), however many: weights for label pairs."""
        return any(t.kind == BIGRAM and not t.macros for t in self.lines)

    def check_columns(self, names: Sequence[str]) -> None:
        """InputError, with the line, for a macro whose column is not among the corpus's columns."""
        for template in self.lines:
            for macro in template.macros:
                if macro.column >= len(names):
                    known = ", ".join(f"{i} ({name})" for i, name in enumerate(names))
                    raise InputError(
                        f"column {macro.column} in {template.fill(_shown(template))}",
                        file=self.file,
                        line=template.line or None,
                        remedy=f"the corpus has the columns {known}",
                    )

    def to_json(self) -> list[dict[str, Any]]:
        """The templates as plain JSON values."""
        return [asdict(template) for template in self.lines]

    @classmethod
    def from_json(cls, data: Iterable[dict[str, Any]], file: str | None = None) -> Templates:
        """The templates that ``to_json`` wrote; KeyError, TypeError, ValueError for others."""
        lines = []
        for entry in data:
            macros = tuple(Macro(**macro) for macro in entry["macros"])
            line = Template(**{**entry, "text": tuple(entry["text"]), "macros": macros})
            if not _is_sound(line):
                raise ValueError("there is no such template")
            lines.append(line)
        return cls(tuple(lines), file)


def _is_sound(template: Template) -> bool:
    """Whether a template that was read from JSON has the types and values that it should."""
    macros = all(
        type(macro.row) is type(macro.column) is int
        and abs(macro.row) <= MOST_ROWS + 1
        and macro.column >= 0
        and type(macro.valued) is bool
        for macro in template.macros
    )
    return (
        macros
        and template.kind in (UNIGRAM, BIGRAM)
        and len(template.text) == len(template.macros) + 1
        and all(isinstance(text, str) for text in template.text)
        and type(template.line) is int
        and (template.reach is None or (type(template.reach) is int and template.reach >= 0))
        and template.where in (EVERYWHERE, FIRST, LAST)
    )


def read_templates(path: str | Path) -> Templates:
    """Read a template file.

    Raises InputError, with the line, for what is no template: another first letter than U or B, a
    percent sign that begins no macro, a macro that looks too far; and for a file without templates.
    """
    with open_text(path) as text:
        return parse_templates(text, text.name)


def parse_templates(lines: Iterable[tuple[int, str]], file: str | None = None) -> Templates:
    """The templates in numbered lines of text; see ``read_templates``."""
    found = []
    for number, line in lines:
        line = line.strip(" \t")
        if line and not line.startswith("#"):
            found.append(_parse(line, file, number))
    if not found:
        raise InputError("holds no templates", file=file, remedy="lines such as U00:%x[0,0] and B")
    return Templates(tuple(found), file)


def _parse(line: str, file: str | None, number: int) -> Template:
    if line[0] not in (UNIGRAM, BIGRAM):
        raise InputError(
            f"a template begins with {line[0]!r}",
            file=file,
            line=number,
            remedy="U for features of a label, B for features of two labels",
        )
    text, macros, end = [], [], 0
    for match in _MACRO.finditer(line):
        kind, row, column = match.groups()
        if kind is None:
            closed = line.find("]", match.start()) + 1 or len(line)
            wrong = line[match.start() : min(closed, match.start() + _SHOWN)]
            raise InputError(
                f"unknown macro {wrong}",
                file=file,
                line=number,
                remedy="%x[row,column], or %v[row,column] for a cell with a value",
            )
        if abs(int(row)) > MOST_ROWS:
            raise InputError(
                f"{match[0]} looks {abs(int(row)):,} words away",
                file=file,
                line=number,
                remedy=f"{MOST_ROWS:,} at most",
            )
        text.append(line[end : match.start()])
        macros.append(Macro(int(row), int(column), kind == "v"))
        end = match.end()
    return Template(line[0], (*text, line[end:]), tuple(macros), number)


def textbook_templates(
    unigram: Iterable[Sequence[int]], bigram: Iterable[Sequence[int]], column: int = 0
) -> Templates:
    """Templates of textbook rules, each a list of offsets over one column.

    A unigram rule stands for the functions s(y_i, x, i), a bigram rule for t(y_(i-1), y_i, x, i),
    one for each combination of the symbols at its offsets from i. Of a bigram rule come three
    templates: at the first word y_(i-1) is the head, after the last one y_i is the tail, and what
    is left to score is one label (a U template); between them it is a B template.
    """
    lines = [_rule(UNIGRAM, "U", rule, column) for rule in unigram]
    for rule in bigram:
        inner = _rule(BIGRAM, "B", rule, column)
        head = _rule(UNIGRAM, "Bhead", rule, column, where=FIRST)
        tail = _rule(UNIGRAM, "Btail", rule, column, where=LAST, shift=1)
        lines += [inner, head, tail]
    return Templates(tuple(lines))


def head_and_tail_templates(unigram: Iterable[Sequence[int]], column: int = 0) -> Templates:
    """What the unigram rules give at the head and the tail themselves.

    The label there is known, so these features never change a probability; a textbook counts them
    among its feature functions all the same.
    """
    lines = []
    for rule in unigram:
        lines.append(_rule(UNIGRAM, "Uhead", rule, column, where=FIRST, shift=-1))
        lines.append(_rule(UNIGRAM, "Utail", rule, column, where=LAST, shift=1))
    return Templates(tuple(lines))


def _rule(
    kind: str,
    prefix: str,
    offsets: Sequence[int],
    column: int,
    *,
    where: str = EVERYWHERE,
    shift: int = 0,
) -> Template:
    """One rule, seen from a word that stands ``shift`` before the place it speaks of."""
    name = f"{prefix}[{','.join(map(str, offsets))}]"
    text = (f"{name}:", *[","] * (len(offsets) - 1), "") if offsets else (name,)
    macros = tuple(Macro(offset + shift, column) for offset in offsets)
    return Template(kind, text, macros, reach=1, where=where)


def boundary(steps: int) -> str:
    """What stands ``steps`` beyond the last word, or, below 0, before the first: ``_B-1``."""
    return f"_B{steps:+d}"


def split_value(cell: str) -> tuple[str, float]:
    """The name and the value of a cell ``name:0.5``; see ``%v`` above.

    Raises ValueError if what follows the first colon is not a finite number.
    """
    name: list[str] = []
    characters = iter(enumerate(cell))
    for place, character in characters:
        if character == "\\":
            name.append(next(characters, (0, "\\"))[1])
        elif character == ":":
            value = float(cell[place + 1 :])
            if value - value != 0:
                raise ValueError(f"{cell!r} has no finite value")
            return "".join(name), value
        else:
            name.append(character)
    return "".join(name), 1.0


def _shown(template: Template) -> list[str]:
    """The macros of a template as they were written."""
    return [f"%{'v' if m.valued else 'x'}[{m.row},{m.column}]" for m in template.macros]
