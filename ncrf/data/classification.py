"""Corpora of sentence classification: ``words ||| [NAME]value ||| label``, one a line."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from ncrf.data.column_layout import LABEL, WORD, feature_name
from ncrf.data.columns import CorpusReader, Labels
from ncrf.data.sentence import ColumnFormat, Sentence
from ncrf.data.text_files import TextFile
from ncrf.errors import InputError

SEPARATOR = " ||| "


def read_classification(
    path: str | Path, *, labels: Labels = "required", features: Collection[str] = ()
) -> CorpusReader:
    """Return a reader of ``path`` whose sentences have one label each: ``labels == [label]``.

    A feature of the sentence is handed on as a feature of every word. Blank lines are skipped.
    With ``labels="optional"`` the label may be missing, as the first line decides: a line of
    words alone has none, neither has one that ends in ``[NAME]value`` of a known feature (one
    in ``features``). The loop over the reader raises InputError for a line at fault.
    """
    return CorpusReader(path, lambda: ClassificationParser(labels == "optional", features))


class ClassificationParser:
    """Parses the lines of one file; the first one settles features and label."""

    def __init__(self, labels_optional: bool, features: Collection[str]) -> None:
        """Take whether labels may be missing, and the features known from training."""
        self._labels_optional = labels_optional
        self._known = features
        self.format: ColumnFormat | None = None

    def sentences(self, text: TextFile) -> Iterator[Sentence]:
        """Yield a sentence for every line of ``text`` that is not blank."""
        for number, line in text:
            if line.strip(" \t"):
                parts = [part.strip(" \t") for part in f" {line} ".split(SEPARATOR)]
                try:
                    yield self._sentence(parts, text.name, number)
                except InputError as error:
                    raise InputError(
                        error.what, file=text.name, line=number, remedy=error.remedy
                    ) from None

    def _sentence(self, parts: list[str], file: str, number: int) -> Sentence:
        form = self.format
        if form is None:
            form = self.format = self._settled(parts)
        if len(parts) != len(form.columns):
            raise InputError(
                f"{len(parts)} part(s) found, expected {len(form.columns)} "
                f"({SEPARATOR.join(form.columns)})",
                remedy=f"separate them by '{SEPARATOR}'",
            )
        words = [word for word in parts[0].replace("\t", " ").split(" ") if word]
        if not words:
            raise InputError("there are no words", remedy="a label needs a sentence before it")
        values = {}
        for column, part in zip(form.columns, parts, strict=True):
            if column == LABEL and not part:
                raise InputError("the label is empty", remedy="write words ||| label")
            if column.startswith("["):
                if not part.startswith(column):
                    raise InputError(f"{part!r} has no prefix {column}", remedy="as in line one")
                values[column[1:-1]] = [part.removeprefix(column)] * len(words)
        labels = [parts[-1]] if form.has_labels else None
        return Sentence(words, labels, values, file, number)

    def _settled(self, parts: list[str]) -> ColumnFormat:
        has_label = not self._labels_optional or (
            len(parts) > 1 and feature_name(parts[-1]) not in self._known
        )
        if has_label and len(parts) == 1:
            raise InputError("there is no label", remedy="write words ||| label")
        columns = dict.fromkeys([WORD])
        for part in parts[1 : len(parts) - has_label]:
            name = feature_name(part)
            if name is None or f"[{name}]" in columns:
                raise InputError(
                    f"{part!r} between words and label is no feature of its own",
                    remedy="write words ||| [NAME]value ||| label",
                )
            columns[f"[{name}]"] = None
        return ColumnFormat((*columns, *[LABEL] * has_label), SEPARATOR)
