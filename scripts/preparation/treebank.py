"""Treebanks of Universal Dependencies as distributed: their files, sentences and counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ncrf.data.conllu import ConlluParser
from ncrf.data.sentence import Sentence
from preparation.sources import SourceFile, find_optional

PARTS = ("train", "dev", "test")
_CODE = re.compile(r"([a-z]{2,3}_[a-z0-9]+)-")


@dataclass(frozen=True)
class Size:
    """Sentences and syntactic words of one part of a treebank."""

    sentences: int
    words: int


# From the files stats.xml of the treebanks' repositories, https://github.com/UniversalDependencies,
# releases 2.15 and 2.16, which agree in these.
PUBLISHED = {
    "en_ewt": (Size(12_544, 204_577), Size(2_001, 25_147), Size(2_077, 25_094)),
    "zh_gsdsimp": (Size(3_997, 98_616), Size(500, 12_663), Size(500, 12_012)),
}


def published_size(source: Path, file: SourceFile, part: str) -> tuple[Size, str] | None:
    """What was published of a part, and where; None if nothing is known.

    The treebank's own stats.xml counts if it lies in ``source``, else the table above. A file
    that does not begin with the treebank's code, as ``en_ewt-``, is known by ``ewt`` in its path.
    """
    stats = find_optional(source, ["stats.xml"])
    if stats is not None:
        found = _size_in(" ".join(stats.lines()), part)
        if found is not None:
            return found, stats.name
    match = _CODE.match(file.base)
    for code, sizes in PUBLISHED.items():
        named = match[1] == code if match else code.partition("_")[2] in file.name
        if named:
            return sizes[PARTS.index(part)], f"{code} of UD 2.15 and 2.16"
    return None


def _size_in(text: str, part: str) -> Size | None:
    """The size of a part in the text of a stats.xml; without ``words`` every token is a word."""
    numbers = rf"<{part}>\s*<sentences>(\d+)</sentences>\s*<tokens>(\d+)</tokens>"
    found = re.search(rf"{numbers}(?:\s*<words>(\d+)</words>)?", text)
    return Size(int(found[1]), int(found[3] or found[2])) if found else None


def conllu_sentences(file: SourceFile, encoding: str) -> Iterator[Sentence]:
    """The sentences of a CoNLL-U file, with the ten cells of every word as ``rows``."""
    return ConlluParser("upos", keep_rows=True).sentences(_Numbered(file, encoding))  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Numbered:
    """A distributed file as ncrf's parsers take one: with a name, line by line with numbers."""

    file: SourceFile
    encoding: str

    @property
    def name(self) -> str:
        return self.file.name

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return enumerate(self.file.lines(self.encoding), 1)
