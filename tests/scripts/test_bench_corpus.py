"""The generated corpus: the published counts of CoNLL-2003, and always the same text."""

import os
import subprocess
import sys
from collections import Counter

import pytest
from benchmark.corpus import PARTS, Writer, scaled, sentence_lengths, write_corpus, write_vectors
from benchmark.words import ZIPF, pseudo_word

from ncrf.data.columns import read_columns
from ncrf.data.vectors import VectorFile

# Sentences, words, longest sentence, distinct words, entities, share of words new since training.
PUBLISHED = {
    "train": (14_041, 203_621, 113, 23_623, 23_499, 0.0),
    "dev": (3_250, 51_362, 109, 9_966, 5_942, 0.084),
    "test": (3_453, 46_435, 124, 9_488, 5_648, 0.122),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """The corpus in full size, as ncrf reads it: part to sentences."""
    folder = tmp_path_factory.mktemp("corpus")
    counts = write_corpus(folder)
    read = {name: list(read_columns(folder / f"{name}.bio")) for name in counts}
    return folder, counts, read


def test_sizes_are_those_of_conll_2003(corpus):
    _, counts, read = corpus
    known = {word for sentence in read["train"] for word in sentence.words}
    for name, (sentences, tokens, longest, distinct, entities, new) in PUBLISHED.items():
        lengths = [len(sentence.words) for sentence in read[name]]
        words = Counter(word for sentence in read[name] for word in sentence.words)
        begun = sum(label[0] == "B" for sentence in read[name] for label in sentence.labels)
        assert (len(lengths), sum(lengths), max(lengths)) == (sentences, tokens, longest)
        assert len(words) == pytest.approx(distinct, rel=0.005 if name == "train" else 0.09)
        assert begun == pytest.approx(entities, rel=0.005 if name == "train" else 0.04)
        strange = sum(count for word, count in words.items() if word not in known)
        assert strange / tokens == pytest.approx(new, abs=0.006)
        found = counts[name]
        assert (found.sentences, found.tokens, found.longest) == (sentences, tokens, longest)
        assert (found.types, sum(found.entities.values())) == (len(words), begun)


def test_lengths_and_words_are_those_of_conll_2003(corpus):
    _, counts, read = corpus
    lengths = [len(sentence.words) for sentence in read["train"]]
    for length, share in {1: 0.013, 2: 0.093, 5: 0.243, 10: 0.527, 20: 0.722, 40: 0.970}.items():
        assert sum(n <= length for n in lengths) / len(lengths) == pytest.approx(share, abs=0.005)
    frequent = Counter(word for sentence in read["train"] for word in sentence.words).most_common()
    assert frequent[0][1] == pytest.approx(7_374, rel=0.1)
    assert frequent[9][1] == pytest.approx(2_838, rel=0.1)
    assert frequent[999][1] == pytest.approx(23, abs=3)
    kinds = {"LOC": 7_140, "PER": 6_600, "ORG": 6_321, "MISC": 3_438}
    for kind, count in kinds.items():
        assert counts["train"].entities[kind] == pytest.approx(count, rel=0.03)
    letters = sum(len(word) for word, _ in frequent) / len(frequent)
    assert letters == pytest.approx(6.7, abs=0.4)


def test_labels_are_bio(corpus):
    for sentence in corpus[2]["dev"]:
        for before, label in zip(["O", *sentence.labels], sentence.labels, strict=False):
            assert label[0] in "BO" or before[2:] == label[2:]


def test_the_text_does_not_depend_on_the_process(tmp_path):
    """Sets and dictionaries of strings have another order under another hash seed."""
    write_corpus(tmp_path / "here", 0.02)
    code = "import sys, pathlib; from benchmark.corpus import write_corpus\n"
    code += "write_corpus(pathlib.Path(sys.argv[1]), 0.02)"
    path = os.pathsep.join(sys.path)
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": path}
    there = [sys.executable, "-c", code, tmp_path / "there"]
    subprocess.run(there, env=environment, check=True)
    for part in PARTS:
        name = f"{part.name}.bio"
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()


@pytest.mark.parametrize("scale", [0.0001, 0.002, 0.07, 0.1, 4, 16])
def test_other_sizes_are_exact_too(scale):
    for part in PARTS:
        wanted = scaled(part, scale)
        lengths = sentence_lengths(wanted)
        assert len(lengths) == wanted.sentences == max(1, round(part.sentences * scale))
        assert sum(lengths) == wanted.tokens == round(part.tokens * scale)
        assert min(lengths) >= 1


def test_sentences_come_one_at_a_time():
    sentences = Writer(scaled(PARTS[0], 2)).sentences()
    first = next(sentences)
    assert all(label in ("O", "B-LOC", "B-PER") or label[0] in "BI" for _, label in first)
    assert next(sentences) != first


@pytest.mark.parametrize("kind", ZIPF)
def test_every_number_has_a_spelling_of_its_own(kind):
    assert len({pseudo_word(kind, number) for number in range(50_000)}) == 50_000


def test_vectors_cover_the_corpus_but_for_a_little(corpus, tmp_path):
    folder, _, read = corpus
    path = tmp_path / "vectors.txt"
    words = {word.lower() for sentence in read["dev"] for word in sentence.words}
    assert write_vectors(path, [folder / "dev.bio"], 12_000) == 12_000
    with path.open(encoding="utf-8") as lines:
        names = [line.split(" ")[0] for line in lines]
    assert len(set(names)) == len(names) == 12_000
    assert len(words & set(names)) == pytest.approx(29 / 30 * len(words), abs=1)
    assert VectorFile(path, {names[0], names[-1]}).dim == 100
    assert write_vectors(path, [folder / "dev.bio"], 100) == 100
