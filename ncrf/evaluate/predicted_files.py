"""Files of predicted labels: laid out like the gold file, or as decoding writes them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ncrf.config import Config
from ncrf.data.classification import SEPARATOR, ClassificationParser
from ncrf.data.column_layout import (
    LABEL,
    SEPARATORS,
    SKIPPED,
    WORD,
    Layout,
    cut,
    default_layout,
)
from ncrf.data.columns import ColumnParser, CorpusReader, Parser
from ncrf.data.conllu import WIDTH, ConlluParser
from ncrf.data.sentence import BOUNDARY, ColumnFormat, Sentence
from ncrf.data.text_files import TextFile
from ncrf.errors import InputError

PREDICTED = "predicted"


def read_predicted(config: Config, path: str, gold_labels: Collection[str] = ()) -> CorpusReader:
    """A reader of the labels that a program predicted for a corpus which ``config`` lays out.

    The file may be laid out like that corpus (its rows have as many columns as ``columns=``
    names), or as ncrf writes it: the word first and the label last, in classification
    ``words<TAB>label``. A last column of probabilities (``marginals=True``) is left out. Of n-best
    output the first labeling counts; ``rows`` of a sentence then hold the word and all its
    labelings, without the line of probabilities before them. ``gold_labels``, which may still
    grow, tell labels that are numbers from probabilities.
    """
    return CorpusReader(path, lambda: PredictedParser(config, gold_labels))


def read_both(config: Config, path: str) -> CorpusReader:
    """A reader of a file that has gold labels and, in the last column, predicted ones.

    The labels of a sentence are the gold ones: of the column that ``columns=`` says, else of the
    one before the predicted ones. Its ``rows`` hold all cells; the predicted label is in the column
    that the reader's format calls `PREDICTED`. A column of probabilities after it is left out.
    """
    keys = config.corpus

    def settle(cells: Sequence[str], separator: str) -> Layout:
        if _probabilities(" ".join(cells)):
            raise InputError(
                "n-best output, which has no gold labels",
                remedy="the file of gold labels, then this one",
            )
        width = len(cells) - (_is_probability(cells[-1]) and not _is_probability(cells[-2:][0]))
        names = keys.columns or (WORD, *[SKIPPED] * (width - 3), LABEL, SKIPPED)
        if width < 3 or len(names) != width or names[-1] != SKIPPED or LABEL not in names:
            said = f"columns={','.join(keys.columns)}" if keys.columns else "expected at least 3"
            raise InputError(
                f"{width} column{'s' * (width != 1)} of labels and words found, {said}",
                remedy="word, gold label and, last, the predicted one; or a file of predictions "
                "beside that of gold labels",
            )
        names = (*names[:-1], PREDICTED, *[SKIPPED] * (len(cells) - width))
        return Layout(ColumnFormat(names, separator), names.index(WORD), names.index(LABEL), ())

    separator = SEPARATORS[keys.column_separator]
    return CorpusReader(
        path, lambda: ColumnParser(settle, separator, keys.comment_prefix, keep_rows=True)
    )


class PredictedParser:
    """Parses a file as its first line is: the parser that fits does the work."""

    def __init__(self, config: Config, gold_labels: Collection[str]) -> None:
        """Take the layout of the gold file, and the labels met in it so far."""
        self._keys = config.corpus
        self._gold_labels = gold_labels
        self._parser: Parser | None = None

    @property
    def format(self) -> ColumnFormat | None:
        """What was settled for the file, None before its first row."""
        return self._parser.format if self._parser else None

    def sentences(self, text: TextFile) -> Iterator[Sentence]:
        """Yield the sentences of ``text``."""
        self._parser = self._fitting(text.first_line())
        yield from self._parser.sentences(text)

    def _fitting(self, line: str) -> Parser:
        keys = self._keys
        if keys.sentence_classification:
            like_gold = SEPARATOR in f" {line} "
            return (
                ClassificationParser(False, ())
                if like_gold
                else ClassifiedParser(self._gold_labels)
            )
        if _probabilities(line, self._gold_labels):
            return NbestParser(SEPARATORS[keys.column_separator])
        if keys.file_format == "conllu":
            tabs = line.count("\t")
            if tabs == WIDTH - 1 or (line.startswith("#") and not tabs):
                return ConlluParser(keys.label_column)
        separator = SEPARATORS[keys.column_separator]
        return ColumnParser(self._settle, separator, keys.comment_prefix, keep_rows=False)

    def _settle(self, cells: Sequence[str], separator: str) -> Layout:
        """The layout of a file whose first row these cells are."""
        if len(cells) < 2:
            return default_layout(cells, separator, False, ())  # which refuses them
        more = len(cells) > 2 and _is_probability(cells[-1], self._gold_labels)
        width = len(cells) - more
        names: tuple[str, ...] = (WORD, *[SKIPPED] * (width - 2), LABEL)
        if self._keys.columns and len(self._keys.columns) == width:
            names = self._keys.columns
        names += (SKIPPED,) * more
        return Layout(ColumnFormat(names, separator), names.index(WORD), names.index(LABEL), ())


class NbestParser:
    """Parses n-best output: blocks of a line ``# p1 p2 ...`` and rows ``word label1 label2 ...``.

    A sentence has as many labelings as its block has probabilities, which may be fewer than in
    others. Its ``rows`` are the word and the labels, without a last column of probabilities.
    """

    format: ColumnFormat | None = None

    def __init__(self, separator: str | None = None) -> None:
        """``separator`` stands between columns; None takes the tab if the first row has one."""
        self._separator = separator

    def sentences(self, text: TextFile) -> Iterator[Sentence]:
        """Yield the sentences of ``text``; InputError for a block that is not n-best output."""
        block: list[str] = []
        start = 0
        for number, line in text:
            if line.strip(" \t"):
                start = start if block else number
                block.append(line)
            elif block:
                yield self._sentence(block, text.name, start)
                block = []
        if block:
            yield self._sentence(block, text.name, start)

    def _sentence(self, block: list[str], file: str, start: int) -> Sentence:
        labelings = len(_probabilities(block[0]))
        if not labelings:
            raise InputError(
                "there are no probabilities before the sentence",
                file=file,
                line=start,
                remedy="# p1 p2 ... as before the first one",
            )
        rows = []
        for number, line in enumerate(block[1:], start + 1):
            self._separator = self._separator or ("\t" if "\t" in line else " ")
            cells = cut(line, self._separator)
            # With marginals=True there is one column more, in every row.
            if len(cells) not in (labelings + 1, labelings + 2) or "" in cells:
                raise InputError(
                    f"{len(cells)} columns found, expected {labelings + 1} (word and a label for "
                    "each of the probabilities above)",
                    file=file,
                    line=number,
                    remedy="n-best output as ncrf decode writes it",
                )
            rows.append(cells[: labelings + 1])
        words, labels = [row[0] for row in rows], [row[1] for row in rows]
        boundary = words == [BOUNDARY]
        return Sentence(words, labels, {}, file, start + 1, boundary, (), rows)


class ClassifiedParser:
    """Parses classified sentences: ``words<TAB>label``, n-best ``words<TAB>label p<TAB>...``.

    The ``rows`` of an n-best sentence hold one row: the words and the labels.
    """

    format = ColumnFormat((WORD, LABEL), "\t")

    def __init__(self, gold_labels: Collection[str] = ()) -> None:
        """``gold_labels`` are taken as they stand, even if they look like ``label p``."""
        self._gold_labels = gold_labels

    def sentences(self, text: TextFile) -> Iterator[Sentence]:
        """Yield a sentence for every line of ``text`` that is not blank."""
        for number, line in text:
            if not line.strip(" \t"):
                continue
            before, *cells = line.split("\t")
            words = [word for word in before.split(" ") if word]
            if not words or not cells or "" in cells:
                raise InputError(
                    "no sentence and its label",
                    file=text.name,
                    line=number,
                    remedy=f"words<TAB>label, or words{SEPARATOR}label",
                )
            # What follows a label without a probability is that probability (marginals=True).
            found = [label for label in map(self._label, cells) if label is not None]
            labels = found or cells[:1]
            rows = [[before, *found]] if found else None
            yield Sentence(words, labels[:1], {}, text.name, number, rows=rows)

    def _label(self, cell: str) -> str | None:
        """LABEL of ``LABEL p``, None for a cell of another form."""
        label, _, probability = cell.rpartition(" ")
        if not label or cell in self._gold_labels or not _is_probability(probability):
            return None
        return label


def _probabilities(line: str, labels: Collection[str] = ()) -> list[str]:
    """``p1 p2 ...`` of a line ``# p1 p2 ...``; none for any other line."""
    first, *cells = line.split() or [""]
    return cells if first == "#" and all(_is_probability(cell, labels) for cell in cells) else []


def _is_probability(cell: str, labels: Collection[str] = ()) -> bool:
    """Whether a cell is a number from 0 to 1 and no label."""
    try:
        return 0 <= float(cell) <= 1 and cell not in labels
    except ValueError:
        return False
