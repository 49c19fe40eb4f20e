"""A corpus file in another label scheme: the labels change, every other byte stays.

The readers say on which lines words stand and what their labels are; the file itself is then
copied line by line, and only the label cells of those lines are written anew. So comments,
blank lines, document boundaries, runs of spaces, line ends and a byte order mark stay as they
stood, and memory does not grow with the file.
"""

from __future__ import annotations

import io
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, NamedTuple

from ncrf.config import Config
from ncrf.data.columns import CorpusReader
from ncrf.data.conllu import MISC
from ncrf.data.corpora import open_corpus
from ncrf.data.ill_formed import IllFormed
from ncrf.data.output_files import replacing
from ncrf.data.partial import is_partial
from ncrf.data.schemes import (
    PLAIN,
    SCHEMES,
    SchemeDetector,
    convert,
    scheme_name,
    split_label,
)
from ncrf.data.sentence import Sentence
from ncrf.data.spooled_input import display_name, spooled
from ncrf.data.text_files import BOM, STANDARD_INPUT, TextFile
from ncrf.errors import InputError

logger = logging.getLogger(__name__)

SHOWN = 5  # ill-formed places that are named
_SPACED_CELL = re.compile(rb"[^ ]+")


@dataclass(frozen=True)
class Conversion:
    """What was done: from which scheme to which, how many labels changed, what was ill-formed.

    ``partial`` counts the labels known in part, which stayed.
    """

    source: str
    target: str
    sentences: int
    tokens: int
    changed: int
    partial: int
    ill_formed: IllFormed


class Change(NamedTuple):
    """A label to be written anew: the line it stands on, what it is and what it becomes."""

    line: int
    old: str
    new: str


def convert_file(config: Config, source: str, output: str, to: str) -> Conversion:
    """Write the corpus ``source`` to ``output`` with its labels in the scheme ``to``.

    The config says how the file is read (``columns``, ``input_scheme``, ...). ``-`` is standard
    input or output, ``.gz`` is unpacked and packed. The file is read twice where its scheme is
    to be detected; what can be read only once is copied to a temporary file before. The output
    appears when it is whole. Ill-formed sequences mean the spans that conlleval reads, and the
    log counts them. Labels that say O as it is stay as they are (``_``, ``o``), and so do all
    labels of a sentence in which one is known in part (``partial_labels``).

    Raises InputError for a file that cannot be read or holds plain labels, for labels known in
    part in another scheme than ``to``, and where output and input are one file.
    """
    target = _span_scheme(to)
    _refuse_output(source, output)
    with spooled(source) as path:
        scheme = _source_scheme(config, path, display_name(source))
        reader = open_corpus(config, path)
        keys = config.corpus
        partial = keys.partial_labels
        ill_formed = IllFormed(scheme, keys.label_delimiter, SHOWN, partial_labels=partial)
        labels = _Labels(reader, scheme, target, config, ill_formed)
        with TextFile(path) as text, _opened(output) as file:
            cell = _LabelCell(reader, config)
            for line in _with_changes(_raw_lines(text), labels.changes(), cell):
                file.write(line)
    counts = (reader.sentences, reader.tokens, labels.changed, labels.partial)
    done = Conversion(scheme, target, *counts, ill_formed)
    _log(done, display_name(source), output)
    return done


def _span_scheme(name: str) -> str:
    canonical = scheme_name(name)
    if canonical == PLAIN:
        raise InputError("plain labels are no scheme to convert to", remedy=", ".join(SCHEMES))
    return canonical


def _refuse_output(source: str, output: str) -> None:
    """InputError for an output that is the input, under whatever name, or a folder."""
    if output == STANDARD_INPUT:
        return
    if os.path.isdir(output):
        raise InputError("is a folder", file=output, remedy="name a file to write")
    if source == STANDARD_INPUT:
        return
    same = os.path.realpath(source) == os.path.realpath(output)
    if not same and os.path.exists(source) and os.path.exists(output):
        same = os.path.samefile(source, output)
    if same:
        raise InputError("is the input itself", file=output, remedy="name another file to write")


def _source_scheme(config: Config, path: str, name: str) -> str:
    """The scheme of a file, as the config says or as its labels do; InputError if it has none."""
    keys = config.corpus
    if keys.input_scheme != "auto":
        scheme, how = scheme_name(keys.input_scheme), "declared"
    else:
        detector = SchemeDetector(keys.label_delimiter)
        for sentence in open_corpus(config, path):
            labels = sentence.labels or ()
            if not any(is_partial(label, keys.partial_labels) for label in labels):
                detector.feed(labels, file=sentence.file, line=sentence.line)
        scheme, how = detector.scheme(), "detected"
    logger.info("%s: label scheme %s (%s)", name, scheme, how)
    if scheme == PLAIN:
        raise InputError(
            "its labels are plain: they mark no spans",
            file=path,
            remedy=f"labels such as B{keys.label_delimiter}PER, or input_scheme=SCHEME",
        )
    return scheme


class _Labels:
    """The labels of a corpus in another scheme, as changes to its lines."""

    def __init__(
        self,
        reader: CorpusReader,
        source: str,
        target: str,
        config: Config,
        ill_formed: IllFormed,
    ) -> None:
        self.changed = self.partial = 0
        self._reader = reader
        self._source = source
        self._target = target
        self._delimiter = config.corpus.label_delimiter
        self._partial_labels = config.corpus.partial_labels
        self._ill_formed = ill_formed

    def changes(self) -> Iterator[Change]:
        """What is to be changed, in the order of the lines."""
        for sentence in self._reader:
            if sentence.labels is None:
                continue  # a document boundary
            self._ill_formed.feed(sentence)
            converted = self._converted(sentence)
            for position, (old, new) in enumerate(zip(sentence.labels, converted, strict=True)):
                # `_` and `o` are O too, and were written so with a purpose.
                if old != new and not (new == "O" and split_label(old, self._delimiter)[0] == "O"):
                    self.changed += 1
                    yield Change(sentence.line_of(position), old, new)

    def _converted(self, sentence: Sentence) -> list[str]:
        labels = sentence.labels or []
        partial = [i for i, x in enumerate(labels) if is_partial(x, self._partial_labels)]
        if partial:
            self._check_partial(sentence, partial[0])
            self.partial += len(partial)
            return labels
        try:
            return convert(labels, self._source, self._target, self._delimiter)
        except InputError as error:
            strange = (i for i, x in enumerate(labels) if not split_label(x, self._delimiter)[0])
            line = sentence.line_of(next(strange, 0))
            raise InputError(
                error.what, file=sentence.file, line=line, remedy=error.remedy
            ) from None

    def _check_partial(self, sentence: Sentence, position: int) -> None:
        """InputError for a label known in part that would have to be another."""
        if self._source == self._target:
            return
        label = (sentence.labels or [])[position]
        raise InputError(
            f"label {label!r} is known in part and cannot be converted "
            f"from {self._source} to {self._target}",
            file=sentence.file,
            line=sentence.line_of(position),
            remedy=f"a corpus whose labels are all known, or --to {self._source}, which it is in",
        )


class _LabelCell:
    """Where the label stands in a line of a file, and how another is put there."""

    def __init__(self, reader: CorpusReader, config: Config) -> None:
        self._reader = reader
        keys = config.corpus
        of_misc = keys.file_format == "conllu" and keys.label_column.lower().startswith("misc:")
        self._misc_key = keys.label_column.partition(":")[2] if of_misc else None

    def replaced(self, line: bytes, change: Change) -> bytes:
        """The line with the new label; InputError if it does not hold the old one."""
        body = line.removesuffix(b"\n").removesuffix(b"\r")
        first = len(BOM) if change.line == 1 and body.startswith(BOM) else 0
        start, end = self._place(body, first)
        old, new = change.old.encode(), change.new.encode()
        if self._misc_key is not None:
            # CoNLL-U's last cell holds KEY=label among others; the first KEY counts.
            found = re.search(
                rb"(?:^|\|)%s=([^|]*)" % re.escape(self._misc_key.encode()), body[start:end]
            )
            start, end = (start + edge for edge in found.span(1)) if found else (start, start)
        if body[start:end] != old:
            raise self.changed(change)
        return line[:start] + new + line[end:]

    def changed(self, change: Change) -> InputError:
        """The error for a line that is not as it was read."""
        return InputError(
            "the file was changed while it was read",
            file=self._reader.path,
            line=change.line,
            remedy="start again",
        )

    def _place(self, body: bytes, first: int) -> tuple[int, int]:
        """Where the label's cell begins and ends; the first cell begins at ``first``."""
        layout = self._reader.format
        assert layout is not None  # a label was read
        number = layout.columns.index("label") if self._misc_key is None else MISC
        if layout.separator == "\t":
            start = first + sum(len(cell) + 1 for cell in body[first:].split(b"\t")[:number])
            end = body.find(b"\t", start)
            return start, end if end >= 0 else len(body)
        cells = list(_SPACED_CELL.finditer(body, first))
        return cells[number].span() if number < len(cells) else (0, 0)


def _with_changes(
    lines: Iterable[bytes], changes: Iterator[Change], cell: _LabelCell
) -> Iterator[bytes]:
    """The lines, those that a change names with another label."""
    change = next(changes, None)
    for number, line in enumerate(lines, 1):
        if change is not None and number == change.line:
            yield cell.replaced(line, change)
            change = next(changes, None)
        else:
            yield line
    if change is not None:
        raise cell.changed(change)


def _raw_lines(text: TextFile) -> Iterator[bytes]:
    """The lines of a file as bytes, each with its end; only LF ends one."""
    for _, _, data in text.byte_blocks():
        yield from io.BytesIO(data)


@contextmanager
def _opened(output: str) -> Iterator[IO[bytes]]:
    """A file to write bytes to; see ``replacing``. ``-`` is standard output."""
    if output == STANDARD_INPUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with replacing(output, "wb") as file:
            yield file


def _log(done: Conversion, name: str, output: str) -> None:
    if not done.sentences:
        logger.warning("%s: holds no sentence", name)
    if done.ill_formed.sentences:
        places = done.ill_formed.places
        logger.warning(
            "%s: ill-formed in %s: %s, taken as conlleval reads them; %s%s",
            name,
            done.source,
            done.ill_formed,
            "; ".join(f"line {line}: {reason}" for line, reason in places.first),
            "; ..." if places.count > len(places.first) else "",
        )
    if done.partial:
        logger.info("%s: %s labels are known in part and stay", name, f"{done.partial:,}")
    logger.info(
        "%s: %s sentences, %s tokens; %s labels changed from %s to %s, written to %s",
        name,
        f"{done.sentences:,}",
        f"{done.tokens:,}",
        f"{done.changed:,}",
        done.source,
        done.target,
        "standard output" if output == STANDARD_INPUT else output,
    )
