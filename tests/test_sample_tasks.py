"""sample_data/: the small corpora for other tasks than named entities are as they are described."""

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.test_sample_data import SAMPLE_DATA, labels, read, words

SIZES = {"train": 200, "dev": 100, "test": 100}
KINDS = {"NUMBER", "PERSON", "PLACE", "THING", "TIME"}


def questions(name: str) -> list[list[str]]:
    lines = (SAMPLE_DATA / name).read_text(encoding="utf-8").splitlines()
    return [line.split(" ||| ") for line in lines]


def usual(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Every item's most frequent label."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for item, label in pairs:
        seen[item][label] += 1
    return {item: counts.most_common(1)[0][0] for item, counts in seen.items()}


@pytest.mark.parametrize("corpus", SIZES)
@pytest.mark.parametrize("kind", ["pos", "seg"])
def test_columns_have_their_size_and_form(corpus: str, kind: str) -> None:
    sentences = read(f"{corpus}.{kind}")
    assert len(sentences) == SIZES[corpus]
    assert {len(row) for sentence in sentences for row in sentence} == {2}


@pytest.mark.parametrize("corpus", SIZES)
def test_parts_of_speech_are_those_of_the_feature_column(corpus: str) -> None:
    featured = read(f"{corpus}.cappos.bioes")[: SIZES[corpus]]
    assert read(f"{corpus}.pos") == [
        [[word, pos.removeprefix("[POS]")] for word, _, pos, _ in sentence] for sentence in featured
    ]


@pytest.mark.parametrize("corpus", SIZES)
def test_segments_are_well_formed_characters(corpus: str) -> None:
    for sentence in read(f"{corpus}.seg"):
        assert all(len(character) == 1 for character in words(sentence))
        assert re.fullmatch("(S|BM*E)+", "".join(labels(sentence))), words(sentence)


def test_segmentation_needs_the_neighbours() -> None:
    train, test = ([tuple(r) for s in read(f"{c}.seg") for r in s] for c in ("train", "test"))
    guess = usual(train)
    right = sum(guess.get(character, "S") == label for character, label in test)
    assert 0.6 < right / len(test) < 0.85
    places = defaultdict(set)
    for character, label in train:
        places[character].add(label)
    assert all(len(places[character]) >= 3 for character in "国大学生上海江")


@pytest.mark.parametrize("corpus", SIZES)
def test_questions_have_one_of_five_labels(corpus: str) -> None:
    pairs = questions(f"{corpus}.clf")
    assert len(pairs) == SIZES[corpus]
    counts = Counter(label for _, label in pairs)
    assert set(counts) == KINDS
    assert min(counts.values()) > 0.1 * len(pairs)


def test_the_first_word_does_not_give_the_label_away() -> None:
    train, test = (
        [(text.split()[0], label) for text, label in questions(f"{c}.clf")]
        for c in ("train", "test")
    )
    guess = usual(train)
    right = sum(guess.get(word) == label for word, label in test)
    assert right / len(test) < 0.8
    assert len({label for word, label in train if word == "what"}) >= 4


@pytest.mark.parametrize("kind", ["seg", "clf"])
def test_nothing_stands_in_two_corpora(kind: str) -> None:
    seen: set[str] = set()
    for corpus in [*SIZES, "raw"]:
        if kind == "clf":
            texts = [parts[0] for parts in questions(f"{corpus}.clf")]
        else:
            texts = ["".join(words(sentence)) for sentence in read(f"{corpus}.seg")]
        assert len(set(texts)) == len(texts) == SIZES.get(corpus, 20)
        assert seen.isdisjoint(texts)
        seen |= set(texts)


def test_raw_files_hold_no_answer() -> None:
    assert all(len(row) == 1 for sentence in read("raw.seg") for row in sentence)
    assert all(len(parts) == 1 for parts in questions("raw.clf"))


def test_they_are_small() -> None:
    for kind in ("pos", "seg", "clf"):
        assert sum(p.stat().st_size for p in Path(SAMPLE_DATA).glob(f"*.{kind}")) < 80_000
