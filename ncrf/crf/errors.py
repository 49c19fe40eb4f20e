"""Errors that name the row of a batch."""

from __future__ import annotations


class RowError(ValueError):
    """An input row that has no answer; ``row`` and ``position`` say where in the batch."""

    def __init__(self, what: str, row: int, position: int | None = None) -> None:
        """Builds the message ``row R, position P: what``; positions count from 0."""
        self.row = row
        self.position = position
        place = f"row {row}" if position is None else f"row {row}, position {position}"
        super().__init__(f"{place}: {what}")


class NoLabelingError(RowError):
    """A row for which every labeling has a score of minus infinity."""
