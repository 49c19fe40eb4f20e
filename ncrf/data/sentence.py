"""A sentence as the corpus readers hand it on, and what was settled about its file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

BOUNDARY = "-DOCSTART-"


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a corpus, with the place it was read from.

    ``labels`` is None where the file has no label column; in sentence classification it holds
    one label for the whole sentence. ``features`` maps a feature's name (without brackets) to
    one value per word. ``line`` is the 1-based line of the first word (of the blank line, where
    a line is a sentence and it is empty). ``boundary`` marks a lone ``-DOCSTART-``: no sentence,
    its labels None and its features empty. ``rows`` and ``comments`` hold the cells and the
    comment lines as they stood in the file, where the reader was asked to keep them.
    """

    words: list[str]
    labels: list[str] | None = None
    features: dict[str, list[str]] = field(default_factory=dict)
    file: str = ""
    line: int = 0
    boundary: bool = False
    lines: Sequence[int] = ()
    rows: list[list[str]] | None = None
    comments: list[str] = field(default_factory=list)

    def line_of(self, position: int) -> int:
        """Return the line of the word at ``position``; comments may stand between the words."""
        return self.lines[position] if self.lines else self.line + position


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """What was settled for a file: its columns in order and the separator between them.

    ``columns`` holds ``word``, ``label``, ``[NAME]`` and ``-``; ``separator`` is a tab, one
    space (which stands for a run of them), or `` ||| `` in sentence classification.
    """

    columns: tuple[str, ...]
    separator: str

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the feature columns, without brackets, in order."""
        return tuple(column[1:-1] for column in self.columns if column.startswith("["))

    @property
    def has_labels(self) -> bool:
        """Whether there is a label column."""
        return "label" in self.columns

    def row_lines(self, sentence: Sentence, labels: Sequence[str] | None = None) -> Iterator[str]:
        """Yield the lines of a sentence read with its rows kept, all columns as they stood.

        ``labels`` replaces the label column, one label per word. Comments come first and an
        empty line last; line ends are left to the caller.
        """
        if sentence.rows is None:
            raise ValueError("the sentence was read without its rows")
        yield from sentence.comments
        place = self.columns.index("label") if labels is not None else -1
        for position, row in enumerate(sentence.rows):
            if labels is not None:
                row = [*row[:place], labels[position], *row[place + 1 :]]
            yield self.separator.join(row)
        yield ""
