"""What of a word does not count when it is looked up."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ncrf.config.schema import Corpus

_ASCII_DIGIT = re.compile("[0-9]")


def normalize_digits(word: str) -> str:
    """Return ``word`` with every digit turned into 0, as ``number_normalized`` asks for.

    A digit is what ``str.isdigit`` takes for one, as in NCRF++: besides 0-9 also the digits of
    other scripts and superscripts.
    """
    if word.isalpha():  # most words; no letter is a digit
        return word
    if word.isascii():
        return _ASCII_DIGIT.sub("0", word)
    return "".join("0" if character.isdigit() else character for character in word)


@dataclass(frozen=True)
class Normalization:
    """What of a word does not count, as the keys ``number_normalized`` and ``lowercase`` say."""

    digits: bool = True
    case: bool = False

    @classmethod
    def of(cls, keys: Corpus) -> Normalization:
        """What these keys ask for."""
        return cls(keys.number_normalized, keys.lowercase)

    def spelling(self, word: str) -> str:
        """The form whose characters the character layer sees."""
        return normalize_digits(word) if self.digits else word

    def key(self, word: str) -> str:
        """The form under which the word alphabet knows a word."""
        return self.key_of_spelling(self.spelling(word))

    def key_of_spelling(self, spelling: str) -> str:
        """The same, given the form for the character layer."""
        return spelling.lower() if self.case else spelling

    def __bool__(self) -> bool:
        """Whether a key can stand for several words."""
        return self.digits or self.case

    def __str__(self) -> str:
        """What is done, in words; empty if it is nothing."""
        return " and ".join(["digits turned to 0"] * self.digits + ["case ignored"] * self.case)
