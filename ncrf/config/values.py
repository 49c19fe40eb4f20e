"""From the raw text of a config to typed values, checked against what the key allows."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ncrf.config.keys import Key, choices_of, declare_choices, nearest, shown

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
_NO_VALUE = ("none", "null")
_BOOLEAN_WORDS = "true/false, yes/no, on/off, 1/0"

declare_choices("from", ["capitalization"])


class BadValueError(ValueError):
    """A value that its key does not allow; ``remedy`` says what would be right."""

    def __init__(self, what: str, remedy: str) -> None:
        """Both parts without the key and its value, which the caller knows."""
        super().__init__(what)
        self.what = what
        self.remedy = remedy


class UnknownChoiceError(BadValueError):
    """A value that is none of an enumerated key's."""


@dataclass(frozen=True)
class FeatureSpec:
    """One handcrafted feature: its column's name, its embedding, or how it is computed.

    ``source`` names a computed feature (``from=capitalization``); None means a column.
    """

    name: str
    emb_size: int = 20
    emb_dir: str | None = None
    emb_norm: bool = False
    source: str | None = None

    def flat(self) -> dict[str, Any]:
        """The mapping that a YAML config holds for it; what is off or unset is left out."""
        entries = {
            "name": self.name,
            "emb_size": self.emb_size,
            "emb_dir": self.emb_dir,
            "emb_norm": self.emb_norm,
            "from": self.source,
        }
        return {k: v for k, v in entries.items() if v is not None and v is not False}


def is_unset(raw: object, key: Key | None = None) -> bool:
    """Whether a raw value means "not given": empty, or ``None`` for a key that may be None."""
    if raw is None or raw == () or raw == []:
        return True
    if not isinstance(raw, str):
        return False
    text = raw.strip().lower()
    return not text or (text in _NO_VALUE and (key is None or key.optional))


def parse_value(key: Key, raw: Any) -> Any:
    """The typed value of ``raw`` for ``key``; BadValueError says what would be right."""
    if isinstance(raw, os.PathLike):
        raw = os.fspath(raw)
    if key.parse is not None:
        return _checked(key, _parsed_by(key.parse, raw))
    if key.choices:
        return parse_choice(raw, key.choices)
    if key.type is bool:
        return parse_boolean(raw)
    if key.type is int:
        return _checked(key, parse_integer(raw))
    if key.type is float:
        return _checked(key, parse_number(raw))
    if key.type is tuple:
        return parse_names(raw)
    return parse_text(raw)


def _parsed_by(parse: Callable[[Any], Any], raw: Any) -> Any:
    """What a key's own function makes of a raw value; a plugin's may raise a plain ValueError."""
    try:
        return parse(raw)
    except BadValueError:
        raise
    except ValueError as error:
        raise BadValueError("is not allowed", str(error)) from error


def _checked(key: Key, value: Any) -> Any:
    """The value if it lies in the key's interval."""
    if key.interval is not None and value is not None and value not in key.interval:
        raise BadValueError("is out of range", str(key.interval))
    return value


def parse_boolean(raw: Any) -> bool:
    """True or False from the eight words a config may use, in any case."""
    if isinstance(raw, bool):
        return raw
    word = str(raw).strip().lower() if isinstance(raw, (str, int)) else ""
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise BadValueError("is not a boolean", _BOOLEAN_WORDS)


def parse_integer(raw: Any) -> int:
    """A whole number; ``10.0`` is none."""
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and re.fullmatch(r"[+-]?[0-9]{1,18}", raw.strip()):
        return int(raw)
    raise BadValueError("is not a whole number", "digits only, as in 10")


def parse_number(raw: Any) -> float:
    """A finite number, with or without exponent."""
    number = math.nan
    if (isinstance(raw, (int, float)) and not isinstance(raw, bool)) or (
        isinstance(raw, str) and "_" not in raw
    ):
        number = _to_float(raw)
    if not math.isfinite(number):
        raise BadValueError("is not a finite number", "as in 0.015 or 1e-8")
    return number


def _to_float(raw: str | float) -> float:
    try:
        return float(raw)
    except (ValueError, OverflowError):
        return math.nan


def parse_text(raw: Any) -> str:
    """A text or path, as it stands."""
    if not isinstance(raw, str):
        raise BadValueError("is not a text", "one value")
    if "\0" in raw:
        raise BadValueError("holds a NUL character", "a text without it")
    return raw


def parse_choice(raw: Any, choices: Iterable[str]) -> str:
    """One of ``choices``, matched in any case, in the spelling of ``choices``."""
    known = {choice.lower(): choice for choice in choices}
    word = raw.strip().lower() if isinstance(raw, str) else str(raw).lower()
    if word in known:
        return known[word]
    close = nearest(word, known.values())
    raise UnknownChoiceError(
        "is not known", f"one of {', '.join(known.values())}; nearest: {close}"
    )


def parse_names(raw: Any) -> tuple[str, ...]:
    """A comma-separated list of names, or a list of them; brackets around a name are dropped."""
    names = [re.sub(r"^\[(.*)\]$", r"\1", name) for name in _parts(raw)]
    if not all(names):
        raise BadValueError("has an empty part", "names with commas between them")
    return tuple(dict.fromkeys(names))


def parse_freeze(raw: Any) -> tuple[str, ...]:
    """The embeddings to freeze: ``word`` and ``char`` in any case, features as they are named."""
    return tuple(
        name.lower() if name.lower() in ("word", "char") else name for name in parse_names(raw)
    )


def parse_auto_boolean(raw: Any) -> bool | str:
    """``auto``, or a boolean."""
    if isinstance(raw, str) and raw.strip().lower() == "auto":
        return "auto"
    try:
        return parse_boolean(raw)
    except BadValueError as error:
        raise BadValueError("is neither auto nor a boolean", _BOOLEAN_WORDS) from error


def parse_vector_cache(raw: Any) -> str:
    """``auto``, ``off`` (YAML reads that as False) or the path of a folder."""
    word = str(raw).strip().lower()
    if word in ("auto", "true", "on", "yes"):
        return "auto"
    if word in ("off", "false", "no", "none"):
        return "off"
    return parse_text(raw)


def parse_limit(raw: Any) -> int | None:
    """A length limit: a whole number from 1, or NCRF++'s -1 for none."""
    limit = parse_integer(raw)
    if limit == -1:
        return None
    if limit < 1:
        raise BadValueError("is out of range", "at least 1, or -1 for no limit")
    return limit


def parse_word_limit(raw: Any) -> int:
    """As :func:`parse_limit`, with no limit kept as -1."""
    limit = parse_limit(raw)
    return -1 if limit is None else limit


def parse_columns(raw: Any) -> tuple[str, ...]:
    """``word,[POS],-,label`` -> its parts, checked: one word, at most one label, no name twice."""
    columns = tuple(
        part.lower() if part.lower() in ("word", "label") else part for part in _parts(raw)
    )
    times = Counter(columns)
    for column in columns:
        if column not in ("word", "label", "-") and not re.fullmatch(r"\[[^\[\]]+\]", column):
            raise BadValueError(
                f"has an unknown column {shown(column)}", "word, label, [NAME], or - to skip one"
            )
        if column != "-" and times[column] > 1:
            raise BadValueError(f"names {column} twice", "every column once")
    if "word" not in columns:
        raise BadValueError("has no word column", "as in word,[POS],label")
    return columns


def parse_label_column(raw: Any) -> str:
    """Where a CoNLL-U file keeps the label: one of four columns, or ``misc:KEY``."""
    text = parse_text(raw).strip()
    column, colon, misc_key = text.partition(":")
    if column.lower() == "misc" and colon and misc_key:
        return f"misc:{misc_key}"
    return parse_choice(text, ("upos", "xpos", "feats", "deprel", "misc:KEY"))


def parse_features(raw: Any) -> tuple[FeatureSpec, ...]:
    """One feature or a list of them, each a text, a mapping or a FeatureSpec."""
    items = [raw] if isinstance(raw, (str, Mapping, FeatureSpec)) else raw
    if not isinstance(items, Sequence):
        raise BadValueError("is not a feature", "as in [Cap] emb_size=20")
    return tuple(parse_feature(item) for item in items)


def parse_feature(raw: Any) -> FeatureSpec:
    """``[Cap] emb_size=20 emb_dir=FILE emb_norm=True from=capitalization`` or its mapping."""
    if isinstance(raw, FeatureSpec):
        raw = raw.flat()
    options = dict(raw) if isinstance(raw, Mapping) else _feature_options(raw)
    parsed: dict[str, Any] = {}
    for option, value in options.items():
        field_name, parse = _feature_option(option)
        if field_name != "name" and is_unset(value):  # a feature may be called None
            continue
        try:
            parsed[field_name] = parse(value)
        except BadValueError as error:
            raise BadValueError(f"{option}={shown(value)} {error.what}", error.remedy) from error
    if "name" not in parsed:
        raise BadValueError("names no feature", "as in [Cap] emb_size=20")
    return FeatureSpec(**parsed)


def _feature_options(raw: Any) -> dict[str, str]:
    """The options of a feature line, its name under ``name``."""
    match = (
        re.fullmatch(r"\s*(\[[^\[\]]*\])\s*(.*)", raw, re.DOTALL) if isinstance(raw, str) else None
    )
    if match is None:
        raise BadValueError("does not begin with [NAME]", "as in [Cap] emb_size=20")
    options = {"name": match[1]}
    for part in match[2].split():
        option, equals, value = part.partition("=")
        option = option.lower()
        if not equals or option == "name":
            raise BadValueError(f"has {shown(part)}", "option=value with no spaces inside")
        if option in options:
            raise BadValueError(f"gives {option} twice", "every option once")
        options[option] = value
    return options


def _feature_option(option: Any) -> tuple[str, Any]:
    """The FeatureSpec field and the parser of one option."""
    known: dict[str, tuple[str, Any]] = {
        "name": ("name", _feature_name),
        "emb_size": ("emb_size", _positive),
        "emb_dir": ("emb_dir", parse_text),
        "emb_norm": ("emb_norm", parse_boolean),
        "from": ("source", lambda value: parse_choice(value, choices_of("from"))),
    }
    found = known.get(str(option).strip().lower())
    if found is None:
        close = nearest(str(option), known)
        raise BadValueError(f"has an unknown option {shown(option)}", f"nearest: {close}")
    return found


def _feature_name(raw: Any) -> str:
    name = re.sub(r"^\[(.*)\]$", r"\1", parse_text(raw).strip()).strip()
    if not name or re.search(r"[\[\]]", name):
        raise BadValueError("is not the name of a feature", "as in Cap or [Cap]")
    return name


def _positive(raw: Any) -> int:
    number = parse_integer(raw)
    if number < 1:
        raise BadValueError("is out of range", "at least 1")
    return number


def _parts(raw: Any) -> list[str]:
    """The stripped parts of ``a,b`` or of a list; YAML's ``[POS]`` in a list is a list of one."""
    if isinstance(raw, str):
        return [part.strip() for part in raw.split(",")]
    if not isinstance(raw, Sequence):
        raise BadValueError("is not a list", "parts with commas between them")
    parts = []
    for item in raw:
        one = item[0] if isinstance(item, list) and len(item) == 1 else item
        if not isinstance(one, str) or "," in one:
            raise BadValueError(f"has a part {shown(item)}", "a list of names")
        parts.append(f"[{one.strip()}]" if isinstance(item, list) else one.strip())
    return parts
