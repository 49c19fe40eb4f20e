"""The window that feature templates see: what their macros take at every word of a corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ncrf.data.attribute_tables import Ints
from ncrf.data.dataset import IntArray, InternedColumn
from ncrf.data.templates import (
    BIGRAM,
    FIRST,
    LAST,
    Macro,
    Template,
    Templates,
    boundary,
    split_value,
)
from ncrf.errors import InputError

Values = NDArray[np.float32]


class TemplateWindow:
    """What macros take at every word of a corpus, as string numbers; each shift is made once."""

    def __init__(
        self,
        templates: Templates,
        columns: Mapping[str, InternedColumn],
        offsets: IntArray,
        number: Callable[[str], int],
    ) -> None:
        templates.check_columns(list(columns))
        self.offsets = offsets
        lengths = np.diff(offsets)
        self.size = int(offsets[-1])
        self._after = np.arange(self.size) - np.repeat(offsets[:-1], lengths)
        self._before_end = np.repeat(lengths, lengths) - self._after
        self._columns = list(columns.values())
        self._file = templates.file
        self._number = number
        self._cells: dict[tuple[int, bool], tuple[Ints, Values | None]] = {}
        self._taken: dict[tuple[Macro, int | None], Ints] = {}

    def present(self, template: Template) -> NDArray[np.bool_]:
        """Where a template applies ``[T]``, but for what its macros have to say."""
        if template.where == FIRST:
            return np.equal(self._after, 0)
        if template.where == LAST:
            return np.equal(self._before_end, 1)
        if template.kind == BIGRAM:
            return np.greater(self._after, 0)
        return np.ones(self.size, np.bool_)

    def strings(self, template: Template) -> list[Ints]:
        """The string numbers ``[T]`` that each macro took, -1 for none."""
        return [self._take(macro, template) for macro in template.macros]

    def values(self, template: Template) -> Values:
        """The values ``[T]`` of a template's attributes."""
        values = np.ones(self.size, np.float32)
        for macro in template.macros:
            cells = self._of_column(macro, template)[1] if macro.valued else None
            if cells is not None:
                place, inside = self._place(macro.row)
                values *= np.where(inside, cells[place], 1)
        return values

    def _place(self, row: int) -> tuple[Ints, NDArray[np.bool_]]:
        place = np.clip(np.arange(row, self.size + row), 0, max(self.size - 1, 0))
        inside = (self._after + row >= 0) & (row < self._before_end)
        return place, inside

    def _take(self, macro: Macro, template: Template) -> Ints:
        key = (macro, template.reach)
        if key in self._taken:
            return self._taken[key]
        cells, row = self._of_column(macro, template)[0], macro.row
        place, inside = self._place(row)
        taken = cells[place]
        if row and not inside.all():
            steps = np.minimum(self._after + row, 0) + np.maximum(row - self._before_end + 1, 0)
            furthest = abs(row) if template.reach is None else min(template.reach, abs(row))
            outside = np.full(2 * furthest + 3, -1, np.int64)  # -1 stands for all that is further
            for distance in range(1, furthest + 1):
                step = -distance if row < 0 else distance
                outside[step] = self._number(boundary(step))
            steps = np.clip(steps, -furthest - 1, furthest + 1)
            taken = np.where(inside, taken, outside[steps])
        self._taken[key] = taken
        return taken

    def _of_column(self, macro: Macro, template: Template) -> tuple[Ints, Values | None]:
        """String numbers ``[T]`` and values ``[T]`` of a macro's column."""
        key = (macro.column, macro.valued)
        if key not in self._cells:
            column = self._columns[macro.column]
            strings, values = column.strings, None
            if macro.valued:
                strings, parsed = self._split(column, template)
                values = parsed[column.ids]
            numbers = np.fromiter(map(self._number, strings), np.int64, len(strings))
            self._cells[key] = numbers[column.ids], values
        return self._cells[key]

    def _split(self, column: InternedColumn, template: Template) -> tuple[list[str], Values]:
        """Names and values of the distinct cells of a column."""
        names, values = [], np.ones(len(column.strings), np.float32)
        for number, cell in enumerate(column.strings):
            try:
                name, values[number] = split_value(cell)
            except ValueError:
                token = int(np.argmax(column.ids == number))
                sentence = int(np.searchsorted(self.offsets, token, "right"))
                place = f"word {int(self._after[token]) + 1} of sentence {sentence}"
                raise InputError(
                    f"%v at {place}: no number after the colon in {cell!r}",
                    file=self._file,
                    line=template.line or None,
                    remedy=r"name:0.5; a colon in the name is written \:",
                ) from None
            names.append(name)
        return names, values
