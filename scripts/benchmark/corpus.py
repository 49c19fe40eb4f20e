"""A generated corpus with the profile of CoNLL-2003, for measuring speed.

The profile: how many sentences and words, how long they are, how often a word comes back and how
many are new in the test set, how many entities of which type and length. The words themselves are
made up. The same arguments give the same files on every machine. Sentences are made one at a time,
so memory does not grow with their number. Only the standard library is needed.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, islice
from math import ceil
from pathlib import Path

from benchmark.words import FRESH, OUTSIDE_WORDS, RANDOM_SEED, ZIPF, pseudo_word

# Sentences not longer than each length, in thousandths.
_LENGTHS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 35, 40, 45, 50, 60)
_TRAIN = (0, 13, 93, 135, 190, 243, 288, 352, 427, 491, 527, 579, 645, 721, 799, 873, 934, 970, 990,
          996.6, 999.7)  # fmt: skip
_DEV = (0, 5, 86, 116, 169, 209, 249, 342, 411, 451, 489, 547, 596, 681, 765, 848, 913, 960, 985,
        992, 997.5)  # fmt: skip
_TEST = (0, 10, 90, 137, 199, 253, 304, 402, 496, 561, 598, 639, 687, 758, 832, 891, 941, 973, 989,
         994, 998)  # fmt: skip


@dataclass(frozen=True)
class Part:
    """A part of CoNLL-2003: its counts, its longest sentence, and its ``_LENGTHS`` column."""

    name: str
    sentences: int
    tokens: int
    longest: int
    shares: tuple[float, ...]


PARTS = (
    Part("train", 14_041, 203_621, 113, _TRAIN),
    Part("dev", 3_250, 51_362, 109, _DEV),
    Part("test", 3_453, 46_435, 124, _TEST),
)

# Sentences up to this length: share of words in entities and of numbers, and of final full stops.
_BANDS = ((3, 0.445, 0.36, 0.09), (9, 0.285, 0.36, 0.24), (20, 0.192, 0.09, 0.61),
          (1000, 0.135, 0.028, 0.93))  # fmt: skip
_TYPES = ("LOC", "PER", "ORG", "MISC")
_TYPE_SHARES = (0.304, 0.585, 0.854, 1.0)  # cumulative, as all below
_ENTITY_LENGTHS = {
    "LOC": (0.854, 0.989, 0.997, 1.0),
    "PER": (0.351, 0.968, 0.996, 1.0),
    "ORG": (0.607, 0.877, 0.957, 0.985, 0.994, 1.0),
    "MISC": (0.75, 0.937, 0.981, 0.995, 1.0),
}
_MEAN_ENTITY = 1.45
_CUES = {"LOC": ("in", "at", "from"), "PER": ("said", "president", "minister"),
         "ORG": ("against", "beat", "the"), "MISC": ("the", "first", "an")}  # fmt: skip
_CUE_SHARE = 0.35  # of entities that follow a word which tells of their type
_BORROWED = {"ORG": 0.12, "MISC": 0.06}  # words of such an entity that are a place's name
_CONTENT_SHARE = 0.46  # of the words outside entities, numbers left out
_FIRST_CONTENT_SHARE = 0.3  # the same of the first words of sentences
_SHOUTED = 0.025  # of words outside entities inside a sentence: with capitals


@dataclass
class Counts:
    """What was written: for the report, and to be checked."""

    sentences: int = 0
    tokens: int = 0
    types: int = 0
    longest: int = 0
    entities: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_TYPES, 0))


Sentence = list[tuple[str, str]]
_ENOUGH = 1000  # sentences for the longest one to be among them


def scaled(part: Part, scale: float) -> Part:
    """The part with ``scale`` times its sentences and words, of the same lengths."""
    sentences = max(1, round(part.sentences * scale))
    tokens = round(part.tokens * scale)
    return Part(part.name, sentences, tokens, part.longest, part.shares)


def sentence_lengths(part: Part) -> list[int]:
    """Lengths of all sentences, shortest first; their sum is exactly ``part.tokens``.

    Taken from the cumulative shares at even steps; what is missing to the exact sum is spread over
    the sentences in the middle, one word each.
    """
    shares, lengths = [*part.shares, 1000.0], [*_LENGTHS, part.longest]
    found = []
    for i in range(part.sentences):
        share = 1000 * (i + 0.5) / part.sentences
        above = bisect(shares, share)
        inside = (share - shares[above - 1]) / (shares[above] - shares[above - 1])
        found.append(ceil(lengths[above - 1] + inside * (lengths[above] - lengths[above - 1])))
    if part.sentences >= _ENOUGH:
        found[-1] = part.longest
    middle = [i for i, length in enumerate(found) if 10 < length < 45] or list(range(len(found)))
    missing = part.tokens - sum(found)
    for turn in range(abs(missing)):
        found[middle[turn * 7919 % len(middle)]] += 1 if missing > 0 else -1
    return found


class Writer:
    """Makes the sentences of one part, one at a time."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._random = random.Random(f"{RANDOM_SEED}-{part.name}")  # string seeds: all platforms
        self._fresh = FRESH.get(part.name, {})
        words, shares = zip(*OUTSIDE_WORDS, strict=True)
        self._words: tuple[str, ...] = words
        self._shares = list(accumulate(shares))

    def sentences(self) -> Iterator[Sentence]:
        """All sentences of the part, words with BIO labels."""
        lengths = sentence_lengths(self._part)
        self._random.shuffle(lengths)
        yield from map(self._sentence, lengths)

    def _sentence(self, length: int) -> Sentence:
        draw = self._random.random
        _, entities, numbers, stops = next(band for band in _BANDS if length <= band[0])
        begins = entities / (_MEAN_ENTITY - entities * (_MEAN_ENTITY - 1))
        numbers = begins + (1 - begins) * numbers / (1 - entities)
        done: Sentence = []
        while len(done) < length:
            left, drawn = length - len(done), draw()
            if left == 1 and length > 1 and draw() < stops:
                done.append((".", "O"))
            elif drawn < begins:
                done += self._entity(left)
            elif drawn < numbers:
                done.append((self._open_word("number"), "O"))
            else:
                done.append((self._outside_word(first=not done), "O"))
        return done

    def _entity(self, left: int) -> Sentence:
        """An entity of at most ``left`` words, or one word that announces it and then it."""
        draw = self._random.random
        kind = _TYPES[bisect(_TYPE_SHARES, draw())]
        done: Sentence = []
        if left > 1 and draw() < _CUE_SHARE:
            cues = _CUES[kind]
            done.append((cues[int(draw() * len(cues))], "O"))
        length = min(left - len(done), 1 + bisect(_ENTITY_LENGTHS[kind], draw()))
        for position in range(length):
            source = "LOC" if draw() < _BORROWED.get(kind, 0.0) else kind
            label = f"{'I' if position else 'B'}-{kind}"
            done.append((self._open_word(source), label))
        return done

    def _outside_word(self, *, first: bool) -> str:
        share = _FIRST_CONTENT_SHARE if first else _CONTENT_SHARE
        if self._random.random() < share:
            word = self._open_word("lower")
        else:
            place = self._random.random() * self._shares[-1]
            word = self._words[bisect(self._shares, place)]
        if first:
            return word.capitalize()
        return word.upper() if self._random.random() < _SHOUTED else word

    def _open_word(self, kind: str) -> str:
        """A word of an open class: frequent ones often, and now and then one never seen before."""
        rank = ZIPF[kind].rank(self._random.random())
        fresh = self._random.random() < self._fresh.get(kind, 0.0)
        return pseudo_word(kind, 2 * rank + fresh)


def write_part(part: Part, path: Path) -> Counts:
    """Write a part as lines ``word label``, a blank line after each sentence."""
    counts, types = Counts(), set()
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for sentence in Writer(part).sentences():
            file.write("".join(f"{word} {label}\n" for word, label in sentence) + "\n")
            counts.sentences += 1
            counts.tokens += len(sentence)
            counts.longest = max(counts.longest, len(sentence))
            for word, label in sentence:
                types.add(word)
                if label[0] == "B":
                    counts.entities[label[2:]] += 1
    counts.types = len(types)
    return counts


def write_corpus(folder: Path, scale: float = 1.0) -> dict[str, Counts]:
    """Write ``train.bio``, ``dev.bio`` and ``test.bio``; what each of them holds."""
    folder.mkdir(parents=True, exist_ok=True)
    return {
        part.name: write_part(scaled(part, scale), folder / f"{part.name}.bio") for part in PARTS
    }


def write_vectors(path: Path, files: Iterable[Path], rows: int, width: int = 100) -> int:
    """Write a text file of pretrained vectors in lower case, as GloVe's are; its number of rows.

    The first rows are words of the corpus files, but for one in thirty; the others are words that
    the corpus does not have. The numbers are random.
    """
    draw = random.Random(f"{RANDOM_SEED}-vectors")
    bound = (3 / width) ** 0.5
    numbers = [f"{draw.uniform(-bound, bound):.5f}" for _ in range(4096)]
    known: dict[str, None] = {}
    for file in files:
        with file.open(encoding="utf-8") as lines:
            known.update((line.split(" ")[0].lower(), None) for line in lines if line != "\n")
    words = [word for number, word in enumerate(known) if number % 30]
    others = (pseudo_word("lower", 2 * rank + 1) for rank in range(20_000, 20_000 + 2 * rows))
    words += islice((word for word in others if word not in known), max(0, rows - len(words)))
    with path.open("w", encoding="utf-8", newline="\n") as out:
        for word in words[:rows]:
            out.write(f"{word} {' '.join(draw.choices(numbers, k=width))}\n")
    return min(rows, len(words))
