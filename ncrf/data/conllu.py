"""CoNLL-U: the treebank format of Universal Dependencies, read as word and label."""

from __future__ import annotations

from collections.abc import Iterator

from ncrf.data.sentence import BOUNDARY, ColumnFormat, Sentence
from ncrf.data.text_files import TextFile
from ncrf.errors import InputError

ID, FORM, MISC, WIDTH = 0, 1, 9, 10
LABEL_COLUMNS = {"upos": 3, "xpos": 4, "feats": 5, "deprel": 7}
ABSENT = "_"


class ConlluParser:
    """Parses CoNLL-U; comments, ranges (``3-4``) and empty nodes (``8.1``) are left out.

    ``label_column`` is upos, xpos, feats, deprel or ``misc:KEY``; a word whose MISC cell has no
    KEY has the label ``_``. Word forms may hold spaces.
    """

    def __init__(self, label_column: str = "upos", keep_rows: bool = False) -> None:
        """Raise InputError for an unknown ``label_column``."""
        name, _, key = label_column.partition(":")
        if name.lower() == "misc" and key:
            self._column, self._key = MISC, f"{key}="
        elif label_column.lower() in LABEL_COLUMNS:
            self._column, self._key = LABEL_COLUMNS[label_column.lower()], ""
        else:
            choices = ", ".join([*LABEL_COLUMNS, "misc:KEY"])
            raise InputError(f"label_column={label_column}", remedy=f"one of {choices}")
        self._keep_rows = keep_rows
        columns = ["-"] * WIDTH
        columns[FORM] = "word"
        if not self._key:
            columns[self._column] = "label"
        self.format = ColumnFormat(tuple(columns), "\t")

    def sentences(self, text: TextFile) -> Iterator[Sentence]:
        """Yield the sentences of ``text``; InputError for a row that is not CoNLL-U."""
        rows: list[list[str]] = []
        numbers: list[int] = []
        comments: list[str] = []
        for number, line in text:
            if not line.strip(" \t"):
                if rows:
                    yield self._sentence(rows, numbers, comments, text.name)
                    rows, numbers, comments = [], [], []
            elif line.startswith("#"):
                if self._keep_rows:
                    comments.append(line)
            else:
                cells = line.split("\t")
                if _is_word(cells, text.name, number):
                    rows.append(cells)
                    numbers.append(number)
        if rows:
            yield self._sentence(rows, numbers, comments, text.name)

    def _sentence(
        self, rows: list[list[str]], numbers: list[int], comments: list[str], file: str
    ) -> Sentence:
        words = [row[FORM] for row in rows]
        kept = rows if self._keep_rows else None
        if words == [BOUNDARY]:
            return Sentence(words, None, {}, file, numbers[0], True, (), kept, comments)
        labels = [self._label(row[self._column]) for row in rows]
        lines = () if numbers[-1] - numbers[0] == len(numbers) - 1 else numbers
        return Sentence(words, labels, {}, file, numbers[0], False, lines, kept, comments)

    def _label(self, cell: str) -> str:
        if not self._key:
            return cell
        for part in cell.split("|"):
            if part.startswith(self._key):
                return part[len(self._key) :] or ABSENT
        return ABSENT


def _is_word(cells: list[str], file: str, line: int) -> bool:
    if len(cells) != WIDTH:
        raise InputError(
            f"{len(cells)} columns found, expected {WIDTH}",
            file=file,
            line=line,
            remedy="CoNLL-U has ten columns separated by tabs; file_format=columns reads others",
        )
    if not cells[ID].isdecimal():
        if all(part.isdecimal() for part in cells[ID].replace(".", "-").split("-")):
            return False
        raise InputError(
            f"{cells[ID]!r} is no word number", file=file, line=line, remedy="such as 3, 3-4 or 8.1"
        )
    if not cells[FORM] or "" in (cells[column] for column in LABEL_COLUMNS.values()):
        raise InputError(
            "a cell is empty", file=file, line=line, remedy="CoNLL-U writes _ for nothing"
        )
    return True
