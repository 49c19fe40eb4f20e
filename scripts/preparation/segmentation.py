"""Word segmentation as labels of characters: BMES, and the pair that a character begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ncrf.errors import InputError
from preparation.sources import SourceFile
from preparation.splitting import blocks
from preparation.treebank import conllu_sentences

END = "</s>"  # what follows the last character, in its pair


def labels_of(words: Iterable[str]) -> list[str]:
    """One of B, M, E, S for each character of the words."""
    labels = []
    for word in words:
        labels += ["S"] if len(word) == 1 else ["B", *"M" * (len(word) - 2), "E"]
    return labels


def column_lines(words: Sequence[str]) -> Iterator[str]:
    """The lines of a sentence: character, it and the next one, label; and an empty line."""
    characters = "".join(words)
    following = [*characters[1:], END]
    for character, after, label in zip(characters, following, labels_of(words), strict=True):
        yield f"{character}\t{character}{after}\t{label}"
    yield ""


def sentences(file: SourceFile, encoding: str) -> Iterator[list[str]]:
    """The words of every sentence of a file: CoNLL-U, BMES (by their names), or words in lines.

    Raises InputError for a word with a space in it and for labels that are no segmentation.
    """
    if file.base.endswith(".conllu"):
        yield from _of_treebank(file, encoding)
    elif file.base.endswith(".bmes"):
        yield from _of_labels(file, encoding)
    else:
        for line in file.lines(encoding):
            if words := line.split():  # also at the wide space U+3000
                yield words


def _of_treebank(file: SourceFile, encoding: str) -> Iterator[list[str]]:
    for sentence in conllu_sentences(file, encoding):
        for position, word in enumerate(sentence.words):
            if " " in word:
                line = sentence.line_of(position)
                raise InputError(f"the word {word!r} holds a space", file=file.name, line=line)
        yield sentence.words


def _of_labels(file: SourceFile, encoding: str) -> Iterator[list[str]]:
    for number, block in enumerate(blocks(file.lines(encoding)), 1):
        cells = [line.split("\t") if "\t" in line else line.split(" ") for line in block]
        characters, labels = [row[0] for row in cells], [row[-1].upper() for row in cells]
        words: list[str] = []
        for character, label in zip(characters, labels, strict=True):
            if label in "BS" or not words:
                words.append("")
            words[-1] += character
        if labels != labels_of(words):
            raise InputError(
                f"sentence {number} is not labelled with B, M, E and S throughout",
                file=file.name,
                remedy="a character and its label in every line",
            )
        yield words
