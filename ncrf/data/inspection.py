"""What corpora hold and what is odd in them, before a model is trained on them.

Every file is streamed, twice: once for its sentences and words, and once its scheme is known
for its labels. Kept are a hash of every sentence and the distinct words, never sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ncrf.config import Config
from ncrf.data.columns import CorpusReader
from ncrf.data.corpora import open_corpus, trained_scheme
from ncrf.data.ill_formed import Findings, IllFormed
from ncrf.data.normalization import Normalization
from ncrf.data.partial import is_partial, settled, without_partial
from ncrf.data.schemes import PLAIN, SchemeDetector, convert, scheme_name, spans
from ncrf.data.sentence import ColumnFormat, Sentence
from ncrf.data.spooled_input import display_name, spooled
from ncrf.data.vectors import (
    Coverage,
    match_vectors,
    most_frequent_forms,
    read_vectors,
    spellings,
)
from ncrf.errors import InputError


@dataclass
class Longest:
    """The longest sentence (in words) or word (in characters) of a file, and its line."""

    length: int = 0
    line: int = 0
    text: str = ""

    def offer(self, length: int, line: int, text: str = "") -> None:
        """Take a longer one; the first of equals stays."""
        if length > self.length:
            self.length, self.line, self.text = length, line, text


@dataclass
class FileReport:
    """What one file holds. Document boundaries are counted as neither sentences nor tokens.

    ``scheme`` is None where there are no labels, and where ``scheme_error`` says why none could
    be told. ``entities`` counts spans by type; ``labels`` counts labels as a model is trained
    on them. ``partial`` counts labels known in part (``partial_labels``), which are in neither,
    and ``partial_sentences`` those that hold any. ``repeated`` are sentences (by their words)
    that stood in this file before, ``shared`` those that an earlier file has. ``new_labels`` are
    ones that the first file lacks.
    """

    file: str
    format: ColumnFormat | None = None
    sentences: int = 0
    tokens: int = 0
    boundaries: int = 0
    scheme: str | None = None
    scheme_source: str = "detected"
    scheme_error: InputError | None = None
    words: Counter[str] = field(default_factory=Counter)
    entities: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    partial: int = 0
    partial_sentences: int = 0
    ill_formed: IllFormed | None = None
    repeated: Findings = field(default_factory=lambda: Findings(None))
    shared: dict[str, Findings] = field(default_factory=dict)
    new_labels: dict[str, Findings] = field(default_factory=dict)
    new_words: tuple[int, int] = (0, 0)  # types, tokens
    new_normalized: tuple[int, int] | None = None  # the same as normalized words
    normalization: str = ""  # how they are normalized
    longest_sentence: Longest = field(default_factory=Longest)
    longest_word: Longest = field(default_factory=Longest)


class Inspector:
    """Looks at one file after another; the first one is compared with as the training corpus."""

    def __init__(self, config: Config, *, keep: int | None = 5) -> None:
        """The config says how files are read; ``keep`` of each kind of finding are kept."""
        # A file that may lack labels is still no raw file of lines.
        self._config = config.replace(raw_format="columns")
        self._keep = keep
        self._started = False
        self._first: FileReport | None = None
        self._first_normalized: set[str] = set()
        self._target: str | None = None
        self._seen: list[tuple[str, dict[int, int]]] = []  # file, hash of a sentence -> line

    @property
    def first(self) -> FileReport | None:
        """The report on the first file; None if that could not be read."""
        return self._first

    def inspect(self, path: str, *, labelled: bool = True) -> FileReport:
        """Read a file and report on it; with ``labelled=False`` it may lack labels.

        Raises InputError for a file that cannot be read or holds no sentence.
        """
        is_first, self._started = not self._started, True
        report = FileReport(display_name(path))
        with spooled(path) as readable:
            reader = open_corpus(self._config, readable, raw=not labelled)
            detector = SchemeDetector(self._config.corpus.label_delimiter)
            self._read_words(reader, report, detector)
            if not report.sentences:
                raise InputError("holds no sentence", file=readable)
            if report.format is None or not report.format.has_labels:
                report.scheme_source = "no labels"
            else:
                self._settle_scheme(report, detector)
                self._read_labels(reader, report)
        if is_first:
            self._take_as_first(report)
        else:
            self._compare(report)
        return report

    # ---------------------------------------------------------------- sentences and words

    def _read_words(
        self, reader: CorpusReader, report: FileReport, detector: SchemeDetector
    ) -> None:
        seen: dict[int, int] = {}
        report.repeated = Findings(self._keep)
        report.shared = {file: Findings(self._keep) for file, _ in self._seen}
        for sentence in reader:
            if sentence.boundary or not sentence.words:
                continue
            self._note_duplicates(sentence, report, seen)
            report.words.update(sentence.words)
            report.longest_sentence.offer(len(sentence.words), sentence.line)
            longest = max(sentence.words, key=len)
            if len(longest) > report.longest_word.length:
                line = sentence.line_of(sentence.words.index(longest))
                report.longest_word.offer(len(longest), line, longest)
            self._feed(sentence, report, detector)
        report.format = reader.format
        report.sentences, report.tokens = reader.sentences, reader.tokens
        report.boundaries = reader.boundaries
        self._seen.append((report.file, seen))

    def _feed(self, sentence: Sentence, report: FileReport, detector: SchemeDetector) -> None:
        """Let the scheme be told from a sentence, unless it is labelled in part, as in training."""
        labels = sentence.labels
        if labels is None:
            return
        partial = sum(is_partial(label, self._config.corpus.partial_labels) for label in labels)
        if partial:
            report.partial += partial
            report.partial_sentences += 1
        else:
            detector.feed(labels, file=sentence.file, line=sentence.line)

    def _note_duplicates(
        self, sentence: Sentence, report: FileReport, seen: dict[int, int]
    ) -> None:
        # No word holds a line end. Among a million sentences, two that differ have one hash of
        # 64 bits with a probability of 3e-8.
        key = hash("\n".join(sentence.words))
        if key in seen:
            report.repeated.add(sentence.line, f"as line {seen[key]}")
        else:
            seen[key] = sentence.line
        for file, lines in self._seen:
            if key in lines:
                report.shared[file].add(sentence.line, f"there line {lines[key]}")

    # ---------------------------------------------------------------- labels

    def _settle_scheme(self, report: FileReport, detector: SchemeDetector) -> None:
        keys = self._config.corpus
        if keys.sentence_classification:
            report.scheme, report.scheme_source = PLAIN, "of whole sentences"
        elif keys.input_scheme != "auto":
            report.scheme, report.scheme_source = scheme_name(keys.input_scheme), "declared"
        else:
            try:
                report.scheme = detector.scheme()
            except InputError as error:
                # The copy of a pipe may be gone when this is shown.
                report.scheme_error = InputError(
                    error.what, file=report.file, line=error.line, remedy=error.remedy
                )

    def _read_labels(self, reader: CorpusReader, report: FileReport) -> None:
        """Count labels, spans and ill-formed sequences, in the scheme of the file.

        A file that could be of several schemes (a few spans show no more than a part of one) is
        of the first file's if it is well-formed in that.
        """
        expected = self._first.scheme if self._first else None
        delimiter = self._config.corpus.label_delimiter
        own = report.scheme or PLAIN
        target = self._target or trained_scheme(self._config, own)
        mode = self._config.corpus.partial_labels
        partial = settled(mode, marks_spans=own != PLAIN)
        if partial == "none":
            report.partial = report.partial_sentences = 0
        found = IllFormed(own, delimiter, self._keep, partial_labels=partial)
        in_expected = None
        if PLAIN not in (own, expected) and expected not in (own, None):
            in_expected = IllFormed(expected or own, delimiter, 0, partial_labels=partial)
        for sentence in reader:
            labels = sentence.labels
            if labels is None:
                continue
            known = without_partial(labels, partial)
            if own != PLAIN:
                report.entities.update(span.label for span in spans(known, delimiter))
                found.feed(sentence)
                if in_expected is not None:
                    in_expected.feed(sentence)
                if target != (expected or own):
                    labels = _converted(labels, own, target, delimiter)
            report.labels.update(label for label in labels if not is_partial(label, partial))
            self._note_new_labels(labels, sentence, report)
        if in_expected is not None and not in_expected.sentences:
            report.scheme, report.scheme_source = expected, "as in the first file"
            found = in_expected
        report.ill_formed = found if own != PLAIN else None

    def _note_new_labels(
        self, labels: Iterable[str], sentence: Sentence, report: FileReport
    ) -> None:
        if self._first is None:
            return
        for position, label in enumerate(labels):
            if label not in self._first.labels:
                found = report.new_labels.setdefault(label, Findings(1))
                found.add(sentence.line_of(position), label)

    # ---------------------------------------------------------------- comparison

    def _take_as_first(self, report: FileReport) -> None:
        self._first = report
        self._target = trained_scheme(self._config, report.scheme) if report.scheme else None
        normalization = Normalization.of(self._config.corpus)
        if normalization:
            self._first_normalized = set(map(normalization.key, report.words))

    def _compare(self, report: FileReport) -> None:
        if self._first is None:
            return
        report.new_words = _unknown(report.words, self._first.words)
        normalization = Normalization.of(self._config.corpus)
        if normalization:
            report.normalization = str(normalization)
            normalized = _normalized(report.words, normalization)
            report.new_normalized = _unknown(normalized, self._first_normalized)


def _converted(labels: list[str], source: str, target: str, delimiter: str) -> list[str]:
    """The labels as training sees them; those that cannot be converted stay, and are said."""
    try:
        return convert(labels, source, target, delimiter)
    except InputError:
        return labels


def _normalized(words: Mapping[str, int], normalization: Normalization) -> Counter[str]:
    """The counts of the words as the word alphabet knows them."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        counts[normalization.key(word)] += count
    return counts


def _unknown(words: Mapping[str, int], known: Iterable[str]) -> tuple[int, int]:
    """How many of the words are not among ``known``: types, tokens."""
    members = known if isinstance(known, (set, Mapping)) else set(known)
    counts = [count for word, count in words.items() if word not in members]
    return len(counts), sum(counts)


def vector_coverage(
    config: Config, path: str, reports: Iterable[FileReport]
) -> list[tuple[FileReport, Coverage]]:
    """How many of each file's words the vector file ``path`` has, found as training finds them.

    The vector file is read once, for all words. Raises InputError where it cannot be read.
    """
    entries = []
    normalization = Normalization.of(config.corpus)
    for report in reports:
        counts = _normalized(report.words, normalization)
        forms = most_frequent_forms(report.words, normalization)
        candidates = [spellings(word, forms.get(word)) for word in counts]
        entries.append((report, candidates, list(counts.values())))
    wanted = {form for _, candidates, _ in entries for forms_ in candidates for form in forms_}
    table = read_vectors(path, wanted, config.files.vector_cache)
    return [
        (report, Coverage.of(match_vectors(candidates, table), counts))
        for report, candidates, counts in entries
    ]
