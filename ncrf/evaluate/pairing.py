"""Two files of the same sentences, gold and predicted, walked side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ncrf.data.columns import Sentence
from ncrf.errors import InputError


def paired(
    gold: Iterable[Sentence], predicted: Iterable[Sentence]
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """The labels of `paired_sentences`; InputError where they are missing."""
    for wanted, found in paired_sentences(gold, predicted):
        yield labels_of(wanted), labels_of(found)


def paired_sentences(
    gold: Iterable[Sentence], predicted: Iterable[Sentence]
) -> Iterator[tuple[Sentence, Sentence]]:
    """Gold and predicted sentences side by side; document boundaries are left out.

    Raises `InputError` with file and line where the words differ and where one file has more
    sentences.
    """
    ours, theirs = _sentences(gold), _sentences(predicted)
    for wanted in ours:
        found = next(theirs, None)
        if found is None:
            raise InputError(
                "a gold sentence that the predicted file does not have",
                file=wanted.file,
                line=wanted.line,
                remedy="the same sentences in both files",
            )
        _check_words(wanted, found)
        yield wanted, found
    extra = next(theirs, None)
    if extra is not None:
        raise InputError(
            "a predicted sentence that the gold file does not have",
            file=extra.file,
            line=extra.line,
            remedy="the same sentences in both files",
        )


def _sentences(sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    return (sentence for sentence in sentences if sentence.words and not sentence.boundary)


def labels_of(sentence: Sentence) -> Sequence[str]:
    """The labels of a sentence; InputError if it has none."""
    if sentence.labels is None:
        raise InputError(
            "no labels to score",
            file=sentence.file,
            line=sentence.line,
            remedy="a label column, named in columns=",
        )
    return sentence.labels


def _check_words(wanted: Sentence, found: Sentence) -> None:
    if wanted.words == found.words:
        return
    shared = min(len(wanted.words), len(found.words))
    at = next((i for i in range(shared) if wanted.words[i] != found.words[i]), shared)
    ours, theirs = (
        repr(side.words[at]) if at < len(side.words) else "the end of the sentence"
        for side in (wanted, found)
    )
    raise InputError(
        f"{theirs} where {wanted.file}:{_line(wanted, at)} has {ours}",
        file=found.file,
        line=_line(found, at),
        remedy="the same words in both files",
    )


def _line(sentence: Sentence, position: int) -> int:
    """The line of a word, or the one where it is missing."""
    if position < len(sentence.words):
        return sentence.line_of(position)
    return sentence.line_of(position - 1) + 1
