"""Words for a generated corpus: made up, with the frequencies and lengths of English.

Words of an open class are numbered from 0, the most frequent one; a number has one spelling, and no
other number of the class has the same.
"""

from __future__ import annotations

from dataclasses import dataclass

RANDOM_SEED = 2003
_RANKS = 400_000

# Words outside entities that come back all the time, per thousand words of text.
_FREQUENT = (
    ("the", 33), (",", 36), ("of", 19), ("in", 17), ("to", 17), ("a", 16), ("and", 14), ("(", 14),
    (")", 14), ('"', 11), ("on", 10), ("said", 8), ("'s", 8), ("for", 7), ("-", 6), ("at", 5),
    ("was", 5), ("with", 4.3), ("that", 4), ("he", 4), ("it", 4), ("from", 3.7), ("by", 3.7),
    (":", 3.4), ("is", 3.4), ("as", 3), (".", 2.5), ("had", 2.8), ("his", 2.7), ("has", 2.7),
    ("but", 2.7), ("an", 2.5), ("not", 2.6), ("were", 2.6), ("be", 2.6), ("after", 2.5),
    ("have", 2.5), ("first", 2.2), ("new", 2.2), ("who", 2.2), ("will", 2.1), ("--", 1.8),
    ("$", 1.8), ("they", 1.9), ("two", 1.9),
)  # fmt: skip
_COMMON = """
    been their are which would this up its year last percent out we one million over
    against when also / three no told people about or some there world all than more into
    could other before time between under them while where only if any made did since
    state market week may she her him because through during down off most then can very
    both day season match
"""
OUTSIDE_WORDS = (*_FREQUENT, *((word, 16 / (10 + i)) for i, word in enumerate(_COMMON.split())))


@dataclass(frozen=True)
class Zipf:
    """Ranks r from 0 with P(r) about 1 / (r + shift)^exponent, drawn in one step."""

    exponent: float
    shift: float

    def rank(self, uniform: float) -> int:
        """The rank at ``uniform``, a number from 0 to below 1."""
        power = 1 - self.exponent
        first, last = self.shift**power, (_RANKS + self.shift) ** power
        return int((first + uniform * (last - first)) ** (1 / power) - self.shift)


# Fitted to the number of types and of words seen once in CoNLL-2003's training set.
ZIPF = {
    "lower": Zipf(1.66, 150),
    "number": Zipf(1.27, 3.6),
    "PER": Zipf(1.37, 60),
    "LOC": Zipf(1.6, 20),
    "ORG": Zipf(1.75, 120),
    "MISC": Zipf(1.8, 40),
}
# Share of draws that give a word which training never has: dev and test are of later months.
FRESH = {
    "dev": {"lower": 0.015, "number": 0.05, "PER": 0.14, "LOC": 0.02, "ORG": 0.02},
    "test": {"lower": 0.045, "number": 0.09, "PER": 0.4, "LOC": 0.05, "ORG": 0.1, "MISC": 0.1},
}

_VOWELS = "aeiou"
# Consonants that begin a syllable, and what a word ends in (never a syllable of its own, so that
# every number has a spelling of its own).
_SOUNDS = {
    "lower": ("bcdlmnrst", ("", "s", "r", "nt", "ngs", "lly", "sted", "ction")),
    "PER": ("bdhjkmrvwz", ("", "n", "s", "v", "ck", "rg", "nson", "nn")),
    "LOC": ("bdghklnpqrt", ("", "n", "nd", "l", "m", "rg", "sk", "y")),
    "ORG": ("cdfglmprstx", ("", "s", "x", "rp", "nk", "ft", "ms", "ct")),
    "MISC": ("cfhlmnprtv", ("", "n", "nish", "c", "rd", "lt", "ns", "th")),
}
_COMPOUND = 9  # one word in so many is a compound


def pseudo_word(kind: str, number: int) -> str:
    """The spelling of a word: its class and its number from 0."""
    if kind == "number":
        return _numeral(number)
    word = _spelled(kind, number)
    if number % _COMPOUND == _COMPOUND - 1:
        word += ("-" if number % 2 else "k") + _spelled(kind, number // 499)
    if kind == "lower":
        return word
    upper = number % (4 if kind == "ORG" else 20) == 1
    return word.upper() if upper else word.capitalize()


def _spelled(kind: str, number: int) -> str:
    consonants, endings = _SOUNDS[kind]
    number, ending = divmod(number, len(endings))
    number += 1
    syllables = []
    while number:
        number, syllable = divmod(number - 1, len(consonants) * len(_VOWELS))
        consonant, vowel = divmod(syllable, len(_VOWELS))
        syllables.append(consonants[consonant] + _VOWELS[vowel])
    return "".join(syllables) + endings[ending]


def _numeral(number: int) -> str:
    """Digits, and then whole numbers, results, fractions, thousands and times in turn."""
    if number < 10:
        return str(number)
    number, form = divmod(number - 10, 5)
    if form == 0:
        return str(number + 10)
    if form == 1:
        return f"{number % 12}-{number // 12}"
    if form == 2:
        return f"{number // 100}.{number % 100:02d}"
    if form == 3:
        return f"{1 + number // 1000},{number % 1000:03d}"
    return f"{number // 60}:{number % 60:02d}.0"
