import numpy as np
import pytest

from ncrf.data.alphabet import Alphabet
from ncrf.data.normalization import Normalization
from ncrf.data.vectors import (
    Coverage,
    VectorTable,
    initial_rows,
    match_vectors,
    most_frequent_forms,
    normalize_rows,
    random_rows,
    spellings,
)


def table_of(**vectors: list[float]) -> VectorTable:
    index = {word: row for row, word in enumerate(vectors)}
    return VectorTable(index, np.array(list(vectors.values()), np.float32))


def way(key: str, original: str | None, words: list[str]) -> tuple[str | None, int]:
    table = VectorTable({w: i for i, w in enumerate(words)}, np.zeros((len(words), 1), np.float32))
    match = match_vectors([spellings(key, original)], table)
    row = int(match.rows[0])
    return (words[row] if match.found[0] else None), int(match.how[0])


NONE, EXACT, LOWER = 0, 1, 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["B-00", "b-00", "B-52", "b-52"], ("B-00", EXACT)),
        (["b-00", "B-52", "b-52"], ("b-00", LOWER)),
        (["B-52", "b-52"], ("B-52", EXACT)),
        (["b-52"], ("b-52", LOWER)),
        (["b-53"], (None, NONE)),
    ],
)
def test_order_of_spellings(words, expected):
    assert way("B-00", "B-52", words) == expected
    assert way("B-00", "B-52", words[::-1]) == expected


def test_digits_alone_are_found_exactly():
    assert way("0000", "1996", ["1996"]) == ("1996", EXACT)
    # also if the caller left out spellings that repeat
    match = match_vectors([("0000", "1996")], table_of(**{"1996": [1.0]}))
    assert match.how.tolist() == [EXACT]


def test_without_normalized_digits_the_word_itself_counts():
    assert way("The", None, ["the", "The"]) == ("The", EXACT)
    assert way("THE", None, ["The", "the"]) == ("the", LOWER)
    assert way("the", None, ["The", "THE"]) == (None, NONE)


def test_most_frequent_forms():
    counts = {"1996": 2, "2001": 3, "1997": 3, "a": 1, "x1": 1}
    found = most_frequent_forms(counts, Normalization())
    assert found == {"0000": "2001", "a": "a", "x0": "x1"}


def test_coverage_counts_types_and_tokens():
    table = table_of(the=[1.0], Paris=[1.0], rome=[1.0])
    words = {"the": 50, "Paris": 3, "Rome": 7, "ROME": 1, "xyzzy": 39}
    match = match_vectors([spellings(word) for word in words], table)
    coverage = Coverage.of(match, list(words.values()))
    assert coverage == Coverage(exact=(2, 53), lower=(2, 8), missing=(1, 39))
    assert (coverage.types, coverage.tokens) == (5, 100)
    assert coverage.found_tokens == pytest.approx(0.61)
    assert coverage.lines() == [
        "found exactly: 2 (40.0 %) types, 53 (53.0 %) tokens",
        "found lower-cased: 2 (40.0 %) types, 8 (8.0 %) tokens",
        "not found: 1 (20.0 %) types, 39 (39.0 %) tokens",
    ]
    assert coverage.warning() is None


@pytest.mark.parametrize(("found", "warned"), [(19, True), (20, False)])
def test_low_coverage_is_a_warning(found, warned):
    coverage = Coverage(exact=(5, found - 3), lower=(1, 3), missing=(1, 100 - found))
    assert (coverage.warning() is not None) == warned
    if warned:
        assert f"only {found}.0 % of the tokens" in coverage.warning()


def test_coverage_of_nothing():
    coverage = Coverage.of(match_vectors([], table_of(a=[1.0])), [])
    assert coverage.found_tokens == 0
    assert coverage.warning() is None
    assert coverage.lines()[0] == "found exactly: 0 (0.0 %) types, 0 (0.0 %) tokens"


def test_random_rows_fill_their_range():
    rows = random_rows(2000, 12, np.random.default_rng(1))
    bound = np.sqrt(3 / 12)
    assert (rows.dtype, rows.shape) == (np.float32, (2000, 12))
    assert -bound <= rows.min() < -0.99 * bound and 0.99 * bound < rows.max() <= bound
    assert abs(rows.mean()) < 0.01
    assert np.linalg.norm(rows, axis=1).mean() == pytest.approx(1, abs=0.02)


def test_normalize_rows():
    rows = normalize_rows(np.array([[3, 4], [0, 0], [1e30, 0]], np.float32))
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0], [1, 0]], rtol=1e-6)


def test_initial_rows():
    alphabet = Alphabet.build({"The": 3, "0000": 2, "xyzzy": 1, "<unk>": 1})
    table = table_of(the=[3, 4], **{"1996": [0, 2], "<pad>": [9, 9]})
    originals = {"0000": "1996", "The": "The"}
    rows, coverage = initial_rows(alphabet, table, np.random.default_rng(0), originals=originals)
    assert rows.shape == (6, 2) and rows.dtype == np.float32
    assert rows[0].tolist() == [0, 0]
    assert rows[alphabet.id("The")].tolist() == [3, 4]
    assert rows[alphabet.id("0000")].tolist() == [0, 2]
    bound = np.sqrt(3 / 2)
    for other in (1, alphabet.id("xyzzy"), alphabet.id("<unk>")):
        assert np.all(np.abs(rows[other]) <= bound) and np.any(rows[other] != 0)
    assert coverage == Coverage(exact=(1, 2), lower=(1, 3), missing=(2, 2))

    normalized, _ = initial_rows(
        alphabet, table, np.random.default_rng(0), originals=originals, normalize=True
    )
    np.testing.assert_allclose(normalized[alphabet.id("The")], [0.6, 0.8], rtol=1e-6)
    np.testing.assert_array_equal(normalized[1], rows[1])  # only found rows are scaled


def test_random_rows_do_not_depend_on_what_is_found():
    alphabet = Alphabet.build({"a": 1, "b": 1, "c": 1})
    one, _ = initial_rows(alphabet, table_of(a=[1, 1]), np.random.default_rng(3))
    two, _ = initial_rows(alphabet, table_of(b=[1, 1]), np.random.default_rng(3))
    np.testing.assert_array_equal(one[4], two[4])
    assert not np.array_equal(one[2], two[2])


def test_alphabet_without_special_entries():
    labels = Alphabet.build({"a": 1}, special=())
    rows, _ = initial_rows(labels, table_of(a=[1, 2]), np.random.default_rng(0))
    assert rows.tolist() == [[1, 2]]
