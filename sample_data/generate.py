"""Make the sample corpora and the sample word vectors from the word lists and rules in source/.

    python sample_data/generate.py [FOLDER]      # FOLDER: where to write; this folder unless given

The corpora are English named-entity recognition in BIOES labels (types PER, ORG, LOC, MISC): one
word a line, columns separated by a space, a blank line after each sentence.

    train.bioes, dev.bioes, test.bioes    `word label`
    *.cappos.bioes                        `word [Cap]1 [POS]PROPN label`: the same sentences
    raw.bioes, raw.cappos.bioes           to decode: every label is a dummy O
    raw.words                             to decode: the words of raw.bioes, without a label column
    raw.txt                               to decode: the same, one sentence a line
    sample.word.emb                       vectors of lower-case words, word2vec's text form

And small ones for other tasks, in train, dev and test:

    *.pos                                 parts of speech, `word POS`: some of the same sentences
    *.seg                                 Chinese word segmentation, a character a line: `中 B`
    *.clf                                 questions and what they ask for: `who is it ? ||| PERSON`
    raw.seg, raw.clf                      to decode: characters, and questions, without labels

[Cap] is 1 for a word that begins with a capital, else 0. [POS] is a universal part of speech, known
because a grammar made the sentence.

Two things make the corpora hard enough to show a wrong model. Many words are a person, a place, a
team, a firm or no name at all (Washington, May, Reading, Apple), and only their neighbours tell
which. And dev and test hold names that training never shows, to be told by their neighbours and
their endings (-ville, -son, -tech). Giving each word its most frequent label reaches 51 F1 on test.

The output is the same bytes on every machine: the one source of chance is `Random.random`, which
Python promises to keep, and the arithmetic is sums, products and square roots.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import fsum, sqrt
from pathlib import Path
from random import Random
from typing import NamedTuple

from rules import HERE, Item, filled, phrase, pick, read_rules, source_lines, weighted

SEED = 42
SIZES = {"train": 600, "dev": 150, "test": 150, "raw": 50}  # sentences
OTHER_SIZES = {"train": 200, "dev": 100, "test": 100, "raw": 20}  # of the other tasks
LONGEST = 40  # words in a sentence

# How often names repeat. Kind by kind, a few names are in the news and come up again and again; the
# rest are put together afresh, outside training with words that training does not have.
FAMOUS = 15  # names of each kind that come up again
FRESH_SHARE = 0.45  # of all names: those put together afresh
NEW_SHARE = 0.6  # of the words of fresh names in dev, test and raw: those kept from training
SHARED_SHARE = 0.3  # of the words of names: the ambiguous ones
KNOWN_SHARE = 0.6  # of the stem-and-ending words: those that training may use
SKEW = 2.0  # 1: all words of a list are equally frequent; above: the first are more frequent

VECTOR_DIM = 50
VECTOR_ROWS = 800  # the most frequent words,
VECTOR_MISSING = 0.1  # less this share of them, so that some words of the corpora have no vector
VECTOR_SENTENCES = 5000  # to learn the vectors from; not written
VECTOR_WINDOW = 3  # words on either side that count as neighbours


class Token(NamedTuple):
    """One word of a sentence with its part of speech and its label."""

    word: str
    pos: str
    label: str


@dataclass
class Draw:
    """The chance that one sentence is made with, and the names that it has used up."""

    rng: Random
    new_share: float  # of the words of fresh names: those kept from training
    used: set[tuple[str, ...]] = field(default_factory=set)


class Names:
    """The word lists and the kinds of names in source/names.txt."""

    def __init__(self, rng: Random) -> None:
        self.words: dict[tuple[str, str], list[str]] = {}  # (list, known|new|shared) -> words
        self.patterns: dict[str, list[str]] = {}  # kind, such as "PER full" -> patterns
        stems: list[str] = []
        for line in source_lines("names.txt"):
            head, _, body = line.partition(": ")
            name, part = head.split()
            if name.isupper():
                self.patterns[head] = weighted(body.split(" | "))
            elif part == "stems":
                stems = body.split()
            elif part == "endings":
                for word in (stem + ending for stem in stems for ending in body.split()):
                    part = "known" if rng.random() < KNOWN_SHARE else "new"
                    self.words.setdefault((name, part), []).append(word)
            else:
                self.words.setdefault((name, part), []).extend(body.split())
        famous = Draw(rng, new_share=0.0)
        self.famous = {
            kind: [self._compose(famous, kind) for _ in range(FAMOUS)] for kind in self.patterns
        }

    def name(self, draw: Draw, kind: str) -> tuple[str, ...]:
        """Draw a name of a kind, as its words; hardly ever one that the sentence has already."""
        for _ in range(10):
            if draw.rng.random() < FRESH_SHARE:
                name = self._compose(draw, kind)
            else:
                name = pick(draw.rng, self.famous[kind], SKEW)
            if name not in draw.used:
                break
        draw.used.add(name)
        return name

    def _compose(self, draw: Draw, kind: str) -> tuple[str, ...]:
        pattern = pick(draw.rng, self.patterns[kind]).split()
        return tuple(self._word(draw, w[1:-1]) if w[0] == "<" else w for w in pattern)

    def _word(self, draw: Draw, name: str) -> str:
        if name.isupper():
            return self._word(draw, name.lower()).upper()
        words = self.words[name, "known"]
        if (name, "shared") in self.words and draw.rng.random() < SHARED_SHARE:
            words = self.words[name, "shared"]
        elif (name, "new") in self.words and draw.rng.random() < draw.new_share:
            words = self.words[name, "new"]
        return pick(draw.rng, words, SKEW)


class Grammar:
    """The rules of source/grammar.txt, the names that fill them, and the words' parts of speech."""

    def __init__(self, rng: Random) -> None:
        self.names = Names(rng)
        self.pos: dict[str, str] = {}
        for line in source_lines("words.txt"):
            tag, _, words = line.partition(": ")
            self.pos |= dict.fromkeys(words.split(), tag)
        self.rules = read_rules("grammar.txt")

    def sentence(self, rng: Random, new_share: float) -> list[Token]:
        """Make a sentence of at most LONGEST words, its first word with a capital."""
        tokens = self._expand(Draw(rng, new_share), "<sentence>")
        while len(tokens) > LONGEST:
            tokens = self._expand(Draw(rng, new_share), "<sentence>")
        for place in range(len(tokens) - 1):
            token = tokens[place]
            # U is left out: the grammar's words in U- and Eu- ("a Uruguayan") take "a".
            if token.word in ("a", "A") and tokens[place + 1].word[0] in "AEIOaeio":
                tokens[place] = token._replace(word=token.word + "n")
        first = tokens[0]
        tokens[0] = first._replace(word=first.word[0].upper() + first.word[1:])
        return tokens

    def _expand(self, draw: Draw, text: str) -> list[Token]:
        tokens: list[Token] = []
        for item in re.findall(r"\{[^}]*\}|\S+", text):
            if item[0] == "{":
                tokens += self._entity(draw, item[1:-1])
            elif re.fullmatch(r"<\w+>", item):
                tokens += self._expand(draw, pick(draw.rng, self.rules[item[1:-1]]))
            else:
                tokens.append(self._literal(draw, item))
        return tokens

    def _literal(self, draw: Draw, item: str) -> Token:
        word, _, tag = item.partition("/")
        word = filled(draw.rng, self.rules, word)
        if not tag and word[0].isdigit():
            tag = "NUM"
        elif not tag and word not in self.pos and not word[0].isalpha():
            tag = "PUNCT"
        return Token(word, tag or self.pos[word], "O")

    def _entity(self, draw: Draw, kind: str) -> list[Token]:
        words = self.names.name(draw, kind)
        entity_type = kind.split()[0]
        prefixes = "S" if len(words) == 1 else "B" + "I" * (len(words) - 2) + "E"
        tokens = []
        for word, prefix in zip(words, prefixes, strict=True):
            pos = "ADJ" if kind == "MISC nation" else self.pos.get(word, "PROPN")
            pos = "NUM" if word[0].isdigit() else pos
            tokens.append(Token(word, pos, f"{prefix}-{entity_type}"))
        return tokens


def corpora(grammar: Grammar, rng: Random) -> dict[str, list[list[Token]]]:
    """Make the corpora of SIZES; no two of their sentences are the same but for one-word ones."""
    made: dict[str, list[list[Token]]] = {corpus: [] for corpus in SIZES}
    seen: set[tuple[str, ...]] = set()
    for corpus, size in SIZES.items():
        while len(made[corpus]) < size:
            sentence = grammar.sentence(rng, 0.0 if corpus == "train" else NEW_SHARE)
            words = tuple(token.word for token in sentence)
            if words not in seen or len(words) == 1:
                seen.add(words)
                made[corpus].append(sentence)
    return made


def different(make: Callable[[], Item]) -> dict[str, list[Item]]:
    """Make the corpora of OTHER_SIZES from items that ``make`` draws; no two are the same."""
    made: dict[str, list[Item]] = {}
    seen: set[Item] = set()
    for corpus, size in OTHER_SIZES.items():
        made[corpus] = []
        while len(made[corpus]) < size:
            item = make()
            if item not in seen:
                seen.add(item)
                made[corpus].append(item)
    return made


def segmentation_texts(rng: Random) -> dict[str, str]:
    """Write the corpora of word segmentation: a character a line, its place in the word."""
    rules = read_rules("segmentation.txt")
    texts = {}
    for corpus, sentences in different(lambda: tuple(phrase(rng, rules, "sentence"))).items():
        lines: list[str] = []
        for words in sentences:
            for word in words:
                places = "S" if len(word) == 1 else "B" + "M" * (len(word) - 2) + "E"
                labels = [""] * len(word) if corpus == "raw" else [f" {p}" for p in places]
                lines += [c + label for c, label in zip(word, labels, strict=True)]
            lines.append("")
        texts[f"{corpus}.seg"] = "".join(line + "\n" for line in lines)
    return texts


def question_texts(rng: Random) -> dict[str, str]:
    """Write the corpora of sentence classification: a question and its label a line."""
    rules = read_rules("questions.txt")
    labels = [rule for rule in rules if rule.isupper()]

    def question() -> tuple[str, str]:
        label = pick(rng, labels)
        return " ".join(phrase(rng, rules, label)), label

    return {
        f"{corpus}.clf": "".join(
            f"{text}\n" if corpus == "raw" else f"{text} ||| {label}\n" for text, label in items
        )
        for corpus, items in different(question).items()
    }


def vectors(grammar: Grammar, rng: Random) -> dict[str, list[float]]:
    """Learn a vector of length 1 for each frequent lower-cased word, from more such sentences.

    By random indexing (Kanerva, Kristoferson and Holst, 2000): every word has a sparse random
    signature, one for each of three relations: stands right before, right after, farther off. A
    word's vector is the sum of its neighbours' signatures, those of frequent words weighing less.
    """
    sentences = [
        [token.word.lower() for token in grammar.sentence(rng, NEW_SHARE)]
        for _ in range(VECTOR_SENTENCES)
    ]
    counts = Counter(word for sentence in sentences for word in sentence)
    signatures = {
        (word, relation): [(int(rng.random() * VECTOR_DIM), sign) for sign in (1, 1, -1, -1)]
        for word in counts
        for relation in (-1, 0, 1)
    }
    sums = {word: [0.0] * VECTOR_DIM for word in counts}
    for sentence in sentences:
        for here, word in enumerate(sentence):
            first, last = max(0, here - VECTOR_WINDOW), here + VECTOR_WINDOW
            for there, neighbour in enumerate(sentence[first : last + 1], first):
                if there == here:
                    continue
                relation = there - here if abs(there - here) == 1 else 0
                for place, sign in signatures[neighbour, relation]:
                    sums[word][place] += sign / sqrt(counts[neighbour])
    frequent = [word for word, _ in counts.most_common(VECTOR_ROWS)]
    return centred({word: sums[word] for word in frequent if rng.random() >= VECTOR_MISSING})


def centred(rows: dict[str, list[float]]) -> dict[str, list[float]]:
    """Scale every row to length 1, take off what all have in common, and scale again."""
    rows = {word: unit(row) for word, row in rows.items()}
    mean = [fsum(column) / len(rows) for column in zip(*rows.values(), strict=True)]
    return {
        word: unit([x - m for x, m in zip(row, mean, strict=True)]) for word, row in rows.items()
    }


def unit(row: list[float]) -> list[float]:
    """Scale a row of numbers to length 1."""
    length = sqrt(fsum(x * x for x in row)) or 1.0
    return [x / length for x in row]


def column_text(sentences: list[list[Token]], columns: str) -> str:
    """Write sentences as lines of the given columns, such as "{word} {label}"."""
    lines = []
    for sentence in sentences:
        lines += [
            columns.format(cap=int(token.word[0].isupper()), **token._asdict())
            for token in sentence
        ]
        lines.append("")
    return "".join(line + "\n" for line in lines)


def vector_text(rows: dict[str, list[float]]) -> str:
    """Write vectors in word2vec's text form: a line with the two sizes, then a word a line."""
    lines = [f"{len(rows)} {VECTOR_DIM}"]
    lines += [" ".join([word, *(f"{x:.3f}" for x in row)]) for word, row in rows.items()]
    return "".join(line + "\n" for line in lines)


def generate(folder: Path) -> None:
    """Write all sample files into a folder, which is made if it is missing."""
    grammar = Grammar(Random(SEED))
    made = corpora(grammar, Random(SEED + 1))
    texts = {"sample.word.emb": vector_text(vectors(grammar, Random(SEED + 2)))}
    texts |= segmentation_texts(Random(SEED + 3)) | question_texts(Random(SEED + 4))
    for corpus, sentences in made.items():
        if corpus != "raw":
            some = sentences[: OTHER_SIZES[corpus]]
            texts[f"{corpus}.pos"] = column_text(some, "{word} {pos}")
        label = "O" if corpus == "raw" else "{label}"
        texts[f"{corpus}.bioes"] = column_text(sentences, "{word} " + label)
        texts[f"{corpus}.cappos.bioes"] = column_text(
            sentences, "{word} [Cap]{cap} [POS]{pos} " + label
        )
    texts["raw.words"] = column_text(made["raw"], "{word}")
    texts["raw.txt"] = "".join(" ".join(t.word for t in s) + "\n" for s in made["raw"])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode("utf-8"))


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
