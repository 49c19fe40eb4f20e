"""Reading corpora: files of columns, raw text one sentence a line, CoNLL-U; streamed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Literal, Protocol

from ncrf.data.column_layout import (
    LABEL,
    SEPARATORS,
    WORD,
    Feature,
    Layout,
    check_row,
    cut,
    declared_layout,
    default_layout,
    parse_columns,
    wrong_width,
)
from ncrf.data.conllu import ConlluParser
from ncrf.data.sentence import BOUNDARY, ColumnFormat, Sentence
from ncrf.data.text_files import TextFile, open_text
from ncrf.errors import InputError

__all__ = ["BOUNDARY", "ColumnFormat", "CorpusReader", "Sentence", "open_text", "read_columns"]

Labels = Literal["required", "optional"]


class Parser(Protocol):
    """Turns the lines of a file into sentences."""

    @property
    def format(self) -> ColumnFormat | None:
        """What was settled for the file, None before its first row."""

    def sentences(self, text: TextFile) -> Iterator[Sentence]:
        """Yield the sentences of an open file."""


class CorpusReader:
    """The sentences of a corpus file, in order; a new pass over the file for every loop.

    Nothing is kept: memory is that of one block of the file. Standard input can be read once.
    While and after a pass, ``format`` says how the file is laid out (None before its first
    row), and ``sentences``, ``tokens`` and ``boundaries`` count what was read so far; document
    boundaries are counted as neither of the first two.
    """

    def __init__(self, path: str | Path, new_parser: Callable[[], Parser]) -> None:
        """Prepare to read ``path``; it is opened when the first sentence is asked for."""
        self.path = path
        self.sentences = self.tokens = self.boundaries = 0
        self._new_parser = new_parser
        self._parser: Parser | None = None

    @property
    def format(self) -> ColumnFormat | None:
        """The layout of the file, None before its first row."""
        return self._parser.format if self._parser else None

    @property
    def separator(self) -> str:
        """The separator for output in the manner of this file: a tab, else one space."""
        return "\t" if self.format and self.format.separator == "\t" else " "

    def __iter__(self) -> Iterator[Sentence]:
        """Yield every sentence and document boundary.

        Raises InputError, with file and line, for whatever cannot be read.
        """
        self.sentences = self.tokens = self.boundaries = 0
        self._parser = self._new_parser()
        with open_text(self.path) as text:
            for sentence in self._parser.sentences(text):
                if sentence.boundary:
                    self.boundaries += 1
                else:
                    self.sentences += 1
                    self.tokens += len(sentence.words)
                yield sentence


def read_columns(
    path: str | Path,
    *,
    columns: str | Sequence[str] | None = None,
    separator: str = "auto",
    comment_prefix: str | None = None,
    raw_format: str = "columns",
    labels: Labels = "required",
    features: Collection[str] = (),
    file_format: str = "columns",
    label_column: str = "upos",
    keep_rows: bool = False,
) -> CorpusReader:
    """Return a reader of the corpus ``path`` (``-``: standard input; ``.gz``: unpacked).

    ``columns``, ``separator`` (auto, tab, space), ``comment_prefix``, ``raw_format`` (columns,
    lines), ``file_format`` (columns, conllu) and ``label_column`` are the config keys of these
    names. With ``labels="optional"`` the label column may be missing: the first row decides,
    and the rest must be like it; ``features`` names the known features, by which a last column
    ``[NAME]value`` is told from a label. ``keep_rows`` keeps all cells and the comments, for
    :meth:`ColumnFormat.row_lines`. ``raw_format="lines"`` makes every line a sentence, has no
    comments, and needs none of the other keys. Wrong arguments raise an InputError here, wrong
    lines one from the loop over the reader.
    """
    _check_choice("column_separator", separator, SEPARATORS)
    _check_choice("raw_format", raw_format, ("columns", "lines"))
    _check_choice("file_format", file_format, ("columns", "conllu"))
    if raw_format == "lines":
        return CorpusReader(path, LineParser)
    if file_format == "conllu":
        conllu = ConlluParser(label_column, keep_rows)  # keeps nothing between two passes
        return CorpusReader(path, lambda: conllu)
    declared = None if columns is None else parse_columns(columns)
    if declared and labels == "required" and LABEL not in declared:
        raise InputError(
            f"columns={','.join(declared)} has no label column", remedy="name one of them label"
        )

    def settle(cells: Sequence[str], found: str) -> Layout:
        optional = labels == "optional"
        if declared is not None:
            return declared_layout(declared, cells, found, optional)
        return default_layout(cells, found, optional, features)

    return CorpusReader(
        path, lambda: ColumnParser(settle, SEPARATORS[separator], comment_prefix, keep_rows)
    )


def _check_choice(key: str, value: str, choices: Collection[str]) -> None:
    if value not in choices:
        raise InputError(f"{key}={value}", remedy=f"one of {', '.join(choices)}")


class ColumnParser:
    """Parses files of one word a row and a blank line after each sentence."""

    def __init__(
        self,
        settle: Callable[[Sequence[str], str], Layout],
        separator: str | None,
        comment_prefix: str | None,
        keep_rows: bool,
    ) -> None:
        """Take the way to settle the layout by the first row, and the separator if it is known."""
        self._settle = settle
        self._separator = separator
        self._comment_prefix = comment_prefix or None
        self._keep_rows = keep_rows
        self._layout: Layout | None = None
        self._file = ""

    @property
    def format(self) -> ColumnFormat | None:
        """What was settled for the file, None before its first row."""
        return self._layout.format if self._layout else None

    def sentences(self, text: TextFile) -> Iterator[Sentence]:
        """Yield the sentences of ``text``; see :class:`CorpusReader`."""
        self._file = text.name
        lines: list[str] = []  # of the sentence that the block before has begun
        start = 1
        blocks = text.blocks()
        while True:
            try:
                first, block = next(blocks)
            except StopIteration:
                break
            except InputError:
                list(self._paragraph(lines, start))  # a mistake in it stands first in the file
                raise
            place = 0
            while True:
                try:
                    end = block.index("", place)
                except ValueError:
                    break
                if not lines:
                    start = first + place
                lines += block[place:end]
                place = end + 1
                if lines:
                    yield from self._paragraph(lines, start)
                    lines = []
            if not lines:
                start = first + place
            lines += block[place:]
        if lines:
            yield from self._paragraph(lines, start)

    def _paragraph(self, lines: list[str], start: int) -> Iterator[Sentence]:
        """The sentences of lines without an empty one among them; mostly it is a single one.

        Plain rows are cut all at once. Where anything else is found - the first row of a file, a
        comment, a line of spaces, a row at fault - each line is looked at.
        """
        layout = self._layout
        if layout is None or self._keep_rows or self._comment_prefix is not None:
            yield from self._line_by_line(lines, start)
            return
        separator, width = layout.format.separator, layout.width
        if {line.count(separator) for line in lines} != {width - 1}:
            yield from self._line_by_line(lines, start)
            return
        cells = separator.join(lines).split(separator)
        if "" in cells or BOUNDARY in cells or not {line[0] for line in lines}.isdisjoint(" \t"):
            yield from self._line_by_line(lines, start)
            return
        labels = cells[layout.label :: width] if layout.label >= 0 else None
        features = {}
        if layout.features:
            numbers = list(range(start, start + len(lines)))
            for feature in layout.features:
                features[feature.name] = self._values(
                    feature, cells[feature.column :: width], numbers
                )
        yield Sentence(cells[layout.word :: width], labels, features, self._file, start)

    def _line_by_line(self, lines: list[str], start: int) -> Iterator[Sentence]:
        separator, width = self._settled()
        rows: list[list[str]] = []
        numbers: list[int] = []
        comments: list[str] = []
        for number, line in enumerate(lines, start):
            if line[0] in " \t" and not line.strip(" \t"):
                if rows:
                    yield self._sentence(rows, numbers, comments)
                    rows, numbers, comments = [], [], []
                continue
            if self._comment_prefix is not None and line.startswith(self._comment_prefix):
                if self._keep_rows:
                    comments.append(line)
                continue
            cells = line.split(separator)
            if len(cells) != width or "" in cells:
                # The first row, a run of spaces, an empty cell, or a row at fault.
                cells = self._uncommon_row(line, number, starts=not rows)
                separator, width = self._settled()
            rows.append(cells)
            numbers.append(number)
        if rows:
            yield self._sentence(rows, numbers, comments)

    def _settled(self) -> tuple[str, int]:
        """Separator and number of cells, none before the first row."""
        layout = self._layout
        return ("\t", -1) if layout is None else (layout.format.separator, layout.width)

    def _uncommon_row(self, line: str, number: int, starts: bool) -> list[str]:
        """Split and check a row that is not plainly of the settled width."""
        separator = self._separator or ("\t" if "\t" in line else " ")
        cells = cut(line, separator)
        if starts and self._is_boundary(cells):
            # It may have fewer cells than the rows it stands before, so it settles nothing.
            return cells
        try:
            if self._layout is None:
                self._layout = self._settle(cells, separator)
                self._separator = separator
            check_row(cells, self._layout)
        except InputError as error:
            raise self._placed(error, number) from None
        return cells

    def _is_boundary(self, row: list[str]) -> bool:
        word = self._layout.word if self._layout else len(row)
        return BOUNDARY in row[: word + 1]

    def _sentence(self, rows: list[list[str]], numbers: list[int], comments: list[str]) -> Sentence:
        kept = rows if self._keep_rows else None
        start = numbers[0]
        if len(rows) == 1 and self._is_boundary(rows[0]):
            return Sentence([BOUNDARY], None, {}, self._file, start, True, (), kept, comments)
        layout = self._layout
        assert layout is not None  # only a boundary, which always stands alone, settles none
        if len(rows[0]) != layout.width:
            # Let through as a boundary, it turned out to be the first row of a sentence.
            raise self._placed(wrong_width(rows[0], layout.format), start)
        cells = [list(column) for column in zip(*rows, strict=True)]
        labels = cells[layout.label] if layout.label >= 0 else None
        features = {
            feature.name: self._values(feature, cells[feature.column], numbers)
            for feature in layout.features
        }
        lines = () if numbers[-1] - start == len(numbers) - 1 else numbers
        words = cells[layout.word]
        return Sentence(words, labels, features, self._file, start, False, lines, kept, comments)

    def _values(self, feature: Feature, cells: list[str], numbers: list[int]) -> list[str]:
        prefix = feature.prefix
        if not prefix:
            return cells
        for cell, number in zip(cells, numbers, strict=True):
            if not cell.startswith(prefix):
                raise InputError(
                    f"column {feature.column + 1}, {cell!r}, has no prefix {prefix}",
                    file=self._file,
                    line=number,
                    remedy=f"begin it with {prefix} as in the first row",
                )
        return [cell[len(prefix) :] for cell in cells]

    def _placed(self, error: InputError, number: int) -> InputError:
        return InputError(error.what, file=self._file, line=number, remedy=error.remedy)


class LineParser:
    """Parses raw text: a sentence a line, words separated by spaces.

    A tab separates too: a word that holds one could not be written out again. A blank line is
    an empty sentence, so that output has a block for every line of input.
    """

    format = ColumnFormat((WORD,), " ")

    def sentences(self, text: TextFile) -> Iterator[Sentence]:
        """Yield one sentence for every line of ``text``."""
        for number, line in text:
            words = [word for word in line.replace("\t", " ").split(" ") if word]
            boundary = words == [BOUNDARY]
            yield Sentence(words, None, {}, text.name, number, boundary)
