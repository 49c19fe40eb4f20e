"""Attributes of every word of a corpus by feature templates, as integers; see ``templates``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncrf.data.attribute_tables import AttributeTable, Ints, build_table
from ncrf.data.dataset import IntArray, InternedColumn, StringTable
from ncrf.data.template_window import TemplateWindow, Values
from ncrf.data.templates import BIGRAM, UNIGRAM, Macro, Template, Templates

Ids = NDArray[np.int32]
Shape = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class TokenAttributes:
    """The attributes of T words; R of each, Q of each pair of a word and the one before.

    ``unigram [T,R]``: numbers of attributes, -1 where there is none. ``bigram [T,Q]``: likewise
    those of the pair that ends in a word, -1 at the first word of a sentence; the bare ``B``, which
    is the same everywhere, is not among them. ``unigram_values [T,R]`` and ``bigram_values [T,Q]``:
    the values, None where all are 1. ``offsets [S+1]``: sentence s holds words offsets[s] to
    offsets[s+1].
    """

    offsets: IntArray
    unigram: Ids
    bigram: Ids
    unigram_values: Values | None = None
    bigram_values: Values | None = None

    @property
    def num_tokens(self) -> int:
        """Words, T."""
        return len(self.unigram)

    def part(self, start: int, end: int) -> TokenAttributes:
        """Those of sentences ``start`` to ``end``, without a copy."""
        first, last = int(self.offsets[start]), int(self.offsets[end])
        values = (self.unigram_values, self.bigram_values)
        return TokenAttributes(
            self.offsets[start : end + 1] - first,
            self.unigram[first:last],
            self.bigram[first:last],
            *(None if of_words is None else of_words[first:last] for of_words in values),
        )


class AttributeVocabulary:
    """The attributes that training met, by template: numbers for the words of any corpus.

    Unigram and bigram attributes are numbered apart, each kind from 0 and one table after the
    other. ``strings`` are all that the macros of kept attributes took; nothing else of the training
    text is kept.
    """

    def __init__(
        self,
        templates: Templates,
        strings: Sequence[str],
        tables: Mapping[Shape, AttributeTable],
        counts: Mapping[Shape, IntArray] | None = None,
    ) -> None:
        self.templates = templates
        self.strings = list(strings)
        self.tables = dict(tables)
        self.counts = counts
        self.bases: dict[Shape, int] = {}
        sizes = {UNIGRAM: 0, BIGRAM: 0}
        for shape, table in self.tables.items():
            self.bases[shape] = sizes[shape[0]]
            sizes[shape[0]] += len(table)
        self.num_unigram, self.num_bigram = sizes[UNIGRAM], sizes[BIGRAM]
        self._numbers = {string: number for number, string in enumerate(self.strings)}

    @classmethod
    def build(
        cls,
        templates: Templates,
        columns: Mapping[str, InternedColumn],
        offsets: IntArray,
        cutoff: int = 1,
    ) -> tuple[AttributeVocabulary, TokenAttributes]:
        """The attributes of a training corpus, and those of each of its words.

        ``columns``: name and content of the columns, T words each, in the order in which macros
        count them. ``offsets [S+1]`` as in ``TokenAttributes``. ``cutoff``: an attribute that
        occurs fewer times is left out (crf_learn ``-f``; CRFsuite's ``feature.minfreq``, which
        counts pairs of attribute and label, is another thing).

        Raises InputError for a macro whose column there is not, or a cell of ``%v`` whose value is
        no number.
        """
        numbers = StringTable()
        window = TemplateWindow(templates, columns, offsets, numbers.__getitem__)
        tables: dict[Shape, AttributeTable] = {}
        counts: dict[Shape, IntArray] = {}
        found: dict[int, Ints] = {}
        for shape, members in _by_shape(templates).items():
            table, ids = _table_of([template for _, template in members], window)
            count = np.bincount(ids[ids >= 0], minlength=len(table))
            if cutoff > 1:
                keep = count >= cutoff
                table, count = table.kept(keep), count[keep]
                ids = np.append(np.where(keep, np.cumsum(keep) - 1, -1), -1)[ids]
            tables[shape], counts[shape] = table, count
            pieces = np.split(ids, len(members))
            found.update((at, piece) for (at, _), piece in zip(members, pieces, strict=True))
        strings, tables = _compact(numbers.strings(), tables)
        vocabulary = cls(templates, strings, tables, counts)
        return vocabulary, vocabulary._assemble(window, found)

    def encode(self, columns: Mapping[str, InternedColumn], offsets: IntArray) -> TokenAttributes:
        """The attributes of each word of a corpus; those that training did not meet are none (-1).

        Args and errors as ``build``.
        """
        window = TemplateWindow(
            self.templates, columns, offsets, lambda string: self._numbers.get(string, -1)
        )
        found: dict[int, Ints] = {}
        for shape, members in _by_shape(self.templates).items():
            for at, template in members:
                ids = self.tables[shape].lookup(window.strings(template), window.size)
                found[at] = np.where(window.present(template), ids, -1)
        return self._assemble(window, found)

    def _assemble(self, window: TemplateWindow, found: Mapping[int, Ints]) -> TokenAttributes:
        """Ids by template, those of a table counted from 0, as arrays over all of them."""
        arrays: dict[str, Any] = {}
        for kind, name in ((UNIGRAM, "unigram"), (BIGRAM, "bigram")):
            chosen = [
                (found[at] + np.where(found[at] >= 0, self.bases[template.shape], 0), template)
                for at, template in enumerate(self.templates.lines)
                if at in found and template.kind == kind
            ]
            ids = np.empty((window.size, len(chosen)), np.int32)
            for column, (numbers, _) in enumerate(chosen):
                ids[:, column] = numbers
            arrays[name] = ids
            if any(macro.valued for _, template in chosen for macro in template.macros):
                values = np.stack([window.values(template) for _, template in chosen], axis=1)
                arrays[f"{name}_values"] = None if (values == 1).all() else values
        return TokenAttributes(window.offsets, **arrays)

    def unigram_strings(self, attributes: Iterable[int] | None = None) -> list[str]:
        """The text of unigram attributes (None: of all), such as ``U02:DT/NN``."""
        return self._texts(UNIGRAM, self.num_unigram, attributes)

    def bigram_strings(self, attributes: Iterable[int] | None = None) -> list[str]:
        """The text of bigram attributes (None: of all)."""
        return self._texts(BIGRAM, self.num_bigram, attributes)

    def _texts(self, kind: str, size: int, attributes: Iterable[int] | None) -> list[str]:
        shapes = [shape for shape in self.tables if shape[0] == kind and len(self.tables[shape])]
        bases = np.array([self.bases[shape] for shape in shapes], np.int64)
        texts = []
        for attribute in range(size) if attributes is None else attributes:
            shape = shapes[int(np.searchsorted(bases, attribute, "right")) - 1]
            keys = self.tables[shape].keys[attribute - self.bases[shape]]
            cells = [self.strings[key] for key in keys.tolist()]
            texts.append(Template(kind, shape[1], (Macro(0, 0),) * len(cells)).fill(cells))
        return texts

    def kept(self, unigram: NDArray[np.bool_], bigram: NDArray[np.bool_]) -> AttributeVocabulary:
        """Without the attributes where ``unigram``, ``bigram`` are False; the rest in order."""
        keep = {UNIGRAM: unigram, BIGRAM: bigram}
        tables = {
            shape: table.kept(keep[shape[0]][self.bases[shape] : self.bases[shape] + len(table)])
            for shape, table in self.tables.items()
        }
        strings, tables = _compact(self.strings, tables)
        return AttributeVocabulary(self.templates, strings, tables)

    def to_json(self) -> dict[str, Any]:
        """Templates, strings and sizes as plain JSON values; ``arrays`` has the rest."""
        return {
            "templates": self.templates.to_json(),
            "strings": self.strings,
            "sizes": [len(table) for table in self.tables.values()],
        }

    def arrays(self) -> dict[str, NDArray[np.int32]]:
        """What ``from_json`` needs beside the JSON: the keys of all attributes, one flat array."""
        keys = [table.keys.reshape(-1) for table in self.tables.values()]
        return {"attribute_keys": np.concatenate(keys) if keys else np.zeros(0, np.int32)}

    @classmethod
    def from_json(
        cls, data: Mapping[str, Any], arrays: Mapping[str, NDArray[np.int32]]
    ) -> AttributeVocabulary:
        """The vocabulary that ``to_json`` and ``arrays`` gave.

        Raises KeyError, TypeError or ValueError for what does not fit.
        """
        templates = Templates.from_json(data["templates"])
        keys, sizes, strings = arrays["attribute_keys"], data["sizes"], data["strings"]
        if not all(isinstance(string, str) for string in strings):
            raise TypeError("a string is none")
        if keys.dtype != np.int32 or keys.ndim != 1 or not all(type(s) is int for s in sizes):
            raise TypeError("a number of another type")
        if keys.size and not 0 <= int(keys.min()) <= int(keys.max()) < len(strings):
            raise ValueError("an attribute names a string that there is not")
        shapes = {shape: len(m[0][1].macros) for shape, m in _by_shape(templates).items()}
        ends = np.cumsum([s * w for s, w in zip(sizes, shapes.values(), strict=True)], dtype=int)
        if min(sizes, default=0) < 0 or len(keys) != ends[-1:].sum():
            raise ValueError(f"{len(keys)} keys of attributes, {ends[-1:].sum()} expected")
        tables = {
            shape: AttributeTable(part.reshape(size, width))
            for (shape, width), size, part in zip(
                shapes.items(), sizes, np.split(keys, ends[:-1]), strict=False
            )
        }
        return cls(templates, strings, tables)


def _by_shape(templates: Templates) -> dict[Shape, list[tuple[int, Template]]]:
    """The templates, but for the bare ``B``, with their places, by the attributes they share."""
    groups: dict[Shape, list[tuple[int, Template]]] = {}
    for at, template in enumerate(templates.lines):
        if template.kind == UNIGRAM or template.macros:
            groups.setdefault(template.shape, []).append((at, template))
    return groups


def _table_of(
    members: Sequence[Template], window: TemplateWindow
) -> tuple[AttributeTable, NDArray[np.int64]]:
    """The attributes that templates have in common, and those of all words, one template's
    ``[T]`` after the other's."""
    present = np.concatenate([window.present(template) for template in members])
    taken = [window.strings(template) for template in members]
    strings = [np.concatenate(column) for column in zip(*taken, strict=True)]
    if not strings:  # one attribute wherever the template applies
        table = AttributeTable(np.zeros((int(present.any()), 0), np.int32))
        return table, np.where(present, 0, -1)
    strings[0] = np.where(present, strings[0], -1)
    return build_table(strings, len(present))


def _compact(
    strings: Sequence[str], tables: Mapping[Shape, AttributeTable]
) -> tuple[list[str], dict[Shape, AttributeTable]]:
    """The strings that the tables use, and the tables with their new numbers."""
    used = np.zeros(len(strings), np.bool_)
    for table in tables.values():
        used[table.keys] = True
    numbers = (np.cumsum(used) - 1).astype(np.int32)
    kept = [strings[number] for number in np.flatnonzero(used).tolist()]
    return kept, {shape: AttributeTable(numbers[t.keys]) for shape, t in tables.items()}
