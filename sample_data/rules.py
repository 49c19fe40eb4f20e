"""Word lists and grammars in source/: how they are read, and how a grammar makes words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

HERE = Path(__file__).resolve().parent

Item = TypeVar("Item")
Rules = dict[str, list[str]]  # a rule's name and its alternatives, each as often as it counts


def pick(rng: Random, items: Sequence[Item], skew: float = 1.0) -> Item:
    """Draw one of the items; above skew 1 the first ones come more often."""
    return items[int(rng.random() ** skew * len(items))]


def weighted(alternatives: Iterable[str]) -> list[str]:
    """Repeat each alternative that starts with `N*` N times, to be drawn by weight."""
    repeated: list[str] = []
    for alternative in alternatives:
        weight, _, text = alternative.rpartition("* ")
        repeated += [text] * int(weight or 1)
    return repeated


def source_lines(name: str) -> list[str]:
    """Read a file of source/ without its comments and blank lines."""
    lines = (HERE / "source" / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def read_rules(name: str) -> Rules:
    """Read the rules of a grammar in source/, each with its alternatives."""
    rules: Rules = {}
    rule = ""
    for line in source_lines(name):
        if line[0].isspace():
            rules[rule].append(line.strip())
        else:
            rule = line.strip().removesuffix(":")
            rules[rule] = []
    return {rule: weighted(alternatives) for rule, alternatives in rules.items()}


def filled(rng: Random, rules: Rules, word: str) -> str:
    """Replace the rules inside a word, as in <digit>:<minute>, by what they make."""
    while "<" in word:
        word = re.sub(r"<(\w+)>", lambda rule: pick(rng, rules[rule[1]]), word)
    return word


def phrase(rng: Random, rules: Rules, rule: str) -> list[str]:
    """Expand a rule of a grammar that has words alone."""
    words: list[str] = []
    for item in pick(rng, rules[rule]).split():
        if re.fullmatch(r"<\w+>", item):
            words += phrase(rng, rules, item[1:-1])
        else:
            words.append(filled(rng, rules, item))
    return words
