"""sample_data/: what its generator writes is what lies there, and is as its docstring says."""

import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from seqeval.metrics import f1_score

SAMPLE_DATA = Path(__file__).parents[1] / "sample_data"
SIZES = {"train": 600, "dev": 150, "test": 150, "raw": 50}
TYPES = ("PER", "ORG", "LOC", "MISC")

Rows = list[list[str]]


def read(name: str) -> list[Rows]:
    """The sentences of a sample file, each a list of rows, each a list of cells."""
    blocks = (SAMPLE_DATA / name).read_text(encoding="utf-8").removesuffix("\n\n").split("\n\n")
    return [[line.split(" ") for line in block.split("\n")] for block in blocks]


def words(sentence: Rows) -> list[str]:
    return [row[0] for row in sentence]


def labels(sentence: Rows) -> list[str]:
    return [row[-1] for row in sentence]


def test_generator_writes_the_files_that_lie_there(tmp_path: Path) -> None:
    subprocess.run([sys.executable, SAMPLE_DATA / "generate.py", tmp_path / "new"], check=True)
    made = {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()}
    lying = {path.name for path in SAMPLE_DATA.glob("[!.]*.*")} - {"generate.py", "rules.py"}
    assert lying == set(made)
    for name, content in made.items():
        assert (SAMPLE_DATA / name).read_bytes() == content, f"{name} is not what generate.py makes"


@pytest.mark.parametrize("corpus", SIZES)
def test_corpus_has_its_size_and_form(corpus: str) -> None:
    sentences = read(f"{corpus}.bioes")
    assert len(sentences) == SIZES[corpus]
    assert {len(row) for sentence in sentences for row in sentence} == {2}
    lengths = {len(sentence) for sentence in sentences}
    assert 1 in lengths
    assert 2 not in lengths
    assert max(lengths) <= 40


@pytest.mark.parametrize("corpus", SIZES)
def test_features_are_those_of_the_same_words(corpus: str) -> None:
    plain, featured = read(f"{corpus}.bioes"), read(f"{corpus}.cappos.bioes")
    assert [[[row[0], row[3]] for row in sentence] for sentence in featured] == plain
    for sentence in featured:
        for word, cap, pos, _ in sentence:
            assert cap == f"[Cap]{int(word[0].isupper())}"
            assert re.fullmatch(r"\[POS\][A-Z]+", pos)


@pytest.mark.parametrize("corpus", ["train", "dev", "test"])
def test_labels_are_well_formed_bioes(corpus: str) -> None:
    one_type = "|".join(f"(S-{t} |B-{t} (I-{t} )*E-{t} )" for t in TYPES)
    for sentence in read(f"{corpus}.bioes"):
        text = "".join(label + " " for label in labels(sentence))
        assert re.fullmatch(f"((O )|{one_type})*", text), words(sentence)


def test_train_has_every_type_length_and_neighbourhood() -> None:
    texts = ["".join(label + " " for label in labels(s)) for s in read("train.bioes")]
    spans = Counter(
        (t, len(span[0].split()))
        for text in texts
        for t in TYPES
        for span in re.finditer(f"S-{t} |B-{t} (I-{t} )*E-{t} ", text)
    )
    assert {length for _, length in spans} == {1, 2, 3, 4, 5}
    assert all(sum(n for (t, _), n in spans.items() if t == kind) > 100 for kind in TYPES)
    pairs = Counter(
        (a[2:] == b[2:])
        for text in texts
        for a, b in re.findall(r"([ES]-\w+) (?=([BS]-\w+))", text)
    )
    assert pairs[True] >= 5  # entities of one type side by side
    assert pairs[False] >= 20


def test_no_sentence_stands_in_two_corpora() -> None:
    seen: set[str] = set()
    for corpus in SIZES:
        texts = [" ".join(words(s)) for s in read(f"{corpus}.bioes") if len(s) > 1]
        assert seen.isdisjoint(texts)
        seen |= set(texts)


def test_raw_files_hold_the_same_words_and_no_answer() -> None:
    raw = read("raw.bioes")
    assert {label for sentence in raw for label in labels(sentence)} == {"O"}
    assert [words(s) for s in read("raw.words")] == [words(s) for s in raw]
    lines = (SAMPLE_DATA / "raw.txt").read_text(encoding="utf-8").splitlines()
    assert [line.split(" ") for line in lines] == [words(s) for s in raw]


def test_words_alone_do_not_give_the_labels_away() -> None:
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in read("train.bioes"):
        for word, label in sentence:
            seen[word][label] += 1
    assert {label[2:] for label in seen["Washington"]} == {"PER", "ORG", "LOC", "MISC"}
    assert "O" in seen["Reading"]
    assert "S-LOC" in seen["Reading"]
    usual = {word: counts.most_common(1)[0][0] for word, counts in seen.items()}
    test = read("test.bioes")
    guess = [[usual.get(word, "O") for word in words(sentence)] for sentence in test]
    assert f1_score([labels(s) for s in test], guess) == pytest.approx(0.51, abs=0.005)
    names = [word for s in test for word, label in s if label != "O"]
    assert 0.1 < sum(word not in seen for word in names) / len(names) < 0.3


def test_vectors_are_in_word2vec_text_form() -> None:
    path = SAMPLE_DATA / "sample.word.emb"
    assert path.stat().st_size < 300_000
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    assert header == f"{len(rows)} 50"
    assert len({row.split(" ")[0] for row in rows}) == len(rows)
    for row in rows:
        word, *numbers = row.split(" ")
        assert word == word.lower()
        assert sum(float(x) ** 2 for x in numbers) == pytest.approx(1, abs=0.02)
        assert len(numbers) == 50
