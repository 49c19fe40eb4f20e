import gzip
import logging
import pickle
import struct
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncrf.data import text_files
from ncrf.data.vector_files import VectorFile, VectorTable, read_vectors
from ncrf.errors import InputError
from tests.fuzz.mutations import fasttext

TEXT = "the 0.5 -1 2e-1\nParis 1 2 3\nparis 4 5 6\n"


@pytest.fixture
def write(tmp_path):
    def write(content: str | bytes, name: str = "vectors.txt"):
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def as_lists(table: VectorTable) -> dict[str, list[float]]:
    return {word: table.matrix[row].tolist() for word, row in table.index.items()}


def both_ways(path) -> list[dict[str, list[float]]]:
    """All vectors, read at once and asked for one by one."""
    table = read_vectors(path)
    file = VectorFile(path)
    assert len(file.table) == 0
    return [as_lists(table), {w: file.rows([w]).matrix[0].tolist() for w in table.index}]


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz", "v.vec", "v.bin"])
@pytest.mark.parametrize("header", ["", "3 3\n"])
def test_text_with_and_without_header(write, name, header):
    expected = {
        "the": [0.5, -1, np.float32(0.2)],
        "Paris": [1, 2, 3],
        "paris": [4, 5, 6],
    }
    path = write(header + TEXT, name)
    assert both_ways(path) == [expected, expected]
    table = read_vectors(path)
    assert (table.matrix.dtype, table.dim, len(table)) == (np.float32, 3, 3)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("\n", " \n"),
        TEXT.replace(" ", "\t"),
        TEXT.replace(" ", "  "),
        TEXT.replace("\n", "\n\n"),
        "\ufeff" + TEXT,
        "\ufeff3 3\r\n" + TEXT,
        " 3  3 \n" + TEXT,
        TEXT.rstrip("\n"),
    ],
)
def test_ways_of_writing_the_same(write, text):
    for found in both_ways(write(text)):
        assert list(found) == ["the", "Paris", "paris"]
        assert found["the"] == [0.5, -1, np.float32(0.2)]
        assert found["paris"] == [4, 5, 6]


@pytest.mark.parametrize("header", ["", "6 2\n"])
def test_words_may_hold_spaces_and_numbers(write, header):
    text = header + "a 1 2\nnew york 3 4\nArea 51 5 6\n. . . 7 8\n10 9 10\nnan 11 12\nb 1 2\n"
    for found in both_ways(write(text)):
        assert found["new york"] == [3, 4]
        assert found["Area 51"] == [5, 6]
        assert found[". . ."] == [7, 8]
        assert found["10"] == [9, 10]
        assert found["nan"] == [11, 12]


def test_numbers_as_words_and_zeros(write):
    for found in both_ways(write("1 2 3\n2 0 0.0\n3 4 0\n1990 1 0\n")):
        assert found == {"1": [2, 3], "2": [0, 0], "3": [4, 0], "1990": [1, 0]}


def test_other_white_space_belongs_to_words(write):
    words = ["10\xa0000", "\u3000", "a\x0bb", "\u2028"]
    table = read_vectors(write("".join(f"{word} 1 2\n" for word in words)))
    assert list(table.index) == words


def test_of_duplicates_the_first_wins(write):
    for found in both_ways(write("a 1 2\nb 3 4\na 5 6\n")):
        assert found == {"a": [1, 2], "b": [3, 4]}


def test_only_wanted_words_and_their_lower_case_forms_are_kept(write):
    path = write(TEXT)
    assert list(read_vectors(path, {"Paris", "London"}).index) == ["Paris", "paris"]
    assert list(read_vectors(path, ["THE"]).index) == ["the"]
    assert len(read_vectors(path, {"none"})) == 0
    assert read_vectors(path, {"none"}).matrix.shape == (0, 3)


# Rows at fault, wanted or not.

FAULTS = [
    ("a 1 2", "2 numbers found, expected 3"),
    ("a 1 x 3", "1 numbers found, expected 3"),
    ("a", "0 numbers found, expected 3"),
    ("1 2 3", "there is no word before the numbers"),
    ("a 1 nan 3", "nan is not a finite"),
    ("a 1 2 -inf", "-inf is not a finite"),
    ("a inf -inf 1", "inf is not a finite"),
    ("a 1e39 2 3", "is not a finite 32-bit number"),
    ("a 1 2 3,5", "0 numbers found"),
    (f"a 1{'0' * 39}.0 0.5 0.5", "is not a finite 32-bit number"),
]


@pytest.mark.parametrize("header", ["", "4 3\n"])
@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz"])
@pytest.mark.parametrize(("row", "what"), FAULTS)
@pytest.mark.parametrize("reader", [read_vectors, VectorFile])
def test_rows_at_fault(write, header, name, row, what, reader):
    path = write(f"{header}{TEXT}\n{row}\nlast 1 2 3\n", name)
    with pytest.raises(InputError, match=what) as caught:
        reader(path, {"the"})
    assert caught.value.line == (6 if header else 5)
    assert str(caught.value).startswith(f"{path}:{caught.value.line}: ")


def test_a_first_row_at_fault_does_not_set_the_width(write):
    with pytest.raises(InputError, match="2 numbers found, expected 3") as caught:
        read_vectors(write("the 1 2\n" + TEXT))
    assert caught.value.line == 1


def test_two_rows_that_differ_are_an_error_not_a_word_with_a_number_in_it(write):
    with pytest.raises(InputError, match="2 numbers found, expected 3"):
        read_vectors(write("a 1 2 3\nb 1 2\n"))


def test_large_numbers_that_float32_can_hold(write):
    assert as_lists(read_vectors(write("a 3e38 3e38\n")))["a"] == [np.float32(3e38)] * 2


def test_header_that_does_not_fit_the_rows(write):
    with pytest.raises(InputError, match="the header says 2 numbers a row, the rows have 3"):
        read_vectors(write("3 2\n" + TEXT))
    with pytest.raises(InputError, match="3 numbers found, expected 4") as caught:
        read_vectors(write("3 4\n" + TEXT))
    assert caught.value.line == 2
    with pytest.raises(InputError, match="the header says 0 numbers"):
        read_vectors(write("3 0\na\n"))


def test_header_with_another_number_of_rows_is_a_warning(write, caplog):
    with caplog.at_level(logging.WARNING):
        assert len(read_vectors(write("3 3\n" + TEXT))) == 3
        assert not caplog.records
        read_vectors(write("400000 3\n" + TEXT))
    assert "the header says 400000 rows, there are 3" in caplog.text


@pytest.mark.parametrize("content", ["", "\n", "3 3\n", " \n\t\n"])
def test_no_vectors(write, content):
    with pytest.raises(InputError, match="no vectors"):
        read_vectors(write(content))


def test_text_that_is_no_vector_file(write):
    with pytest.raises(InputError, match="no numbers found"):
        read_vectors(write("EU B-ORG\nrejects O\n"))


def test_invalid_utf8(write):
    path = write(b"a 1 2\nM\xfcller 1 2\n")
    with pytest.raises(InputError, match="byte 0xfc is not valid UTF-8") as caught:
        read_vectors(path, {"a"})
    assert caught.value.line == 2
    path = write(b"2 2\nHerr M\xfcller 1 2\na 1 2\n")
    with pytest.raises(InputError, match="byte 0xfc is not valid UTF-8") as caught:
        read_vectors(path, {"a"})
    assert caught.value.line == 2


def test_missing_file(tmp_path):
    for reader in (read_vectors, VectorFile):
        with pytest.raises(InputError, match="no such file"):
            reader(tmp_path / "none.kv")


def test_pickles_are_refused_with_the_way_to_convert_them(write):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was loaded",))

    for name, protocol in (("v.kv", 0), ("v.kv", 5), ("v.model", 2), ("v.txt", 4)):
        path = write(pickle.dumps(Trap(), protocol), name)
        with pytest.raises(InputError, match=r"is a pickle.*save_word2vec_format"):
            read_vectors(path)


# Binary files, written by gensim.


@pytest.fixture
def keyed_vectors():
    models = pytest.importorskip("gensim.models")
    vectors = models.KeyedVectors(vector_size=4)
    matrix = np.random.default_rng(5).normal(size=(4, 4)).astype(np.float32)
    vectors.add_vectors(["the", "Zürich", "zürich", "new_york"], matrix)
    return vectors


@pytest.mark.parametrize("name", ["v.bin", "v.bin.gz", "v.vectors"])
def test_word2vec_binary(tmp_path, keyed_vectors, name):
    path = tmp_path / name
    keyed_vectors.save_word2vec_format(str(path), binary=True)
    table = read_vectors(path)
    assert list(table.index) == keyed_vectors.index_to_key
    np.testing.assert_array_equal(table.matrix, keyed_vectors.vectors)
    wanted = read_vectors(path, {"ZÜRICH"})
    assert list(wanted.index) == ["zürich"]
    np.testing.assert_array_equal(wanted.matrix[0], keyed_vectors["zürich"])
    file = VectorFile(path, {"the"})
    assert (list(file.table.index), file.dim) == (["the"], 4)
    np.testing.assert_array_equal(file.rows(["x", "zürich"]).matrix[0], keyed_vectors["zürich"])


def test_word2vec_binary_that_happens_to_be_utf8(tmp_path, keyed_vectors):
    path = tmp_path / "v.bin"
    keyed_vectors.vectors[:] = 0.5
    keyed_vectors.save_word2vec_format(str(path), binary=True)
    assert as_lists(read_vectors(path, {"the"})) == {"the": [0.5] * 4}


def test_word2vec_text_of_gensim(tmp_path, keyed_vectors):
    path = tmp_path / "v.bin"
    keyed_vectors.save_word2vec_format(str(path), binary=False)
    table = read_vectors(path)
    assert list(table.index) == keyed_vectors.index_to_key
    np.testing.assert_array_equal(table.matrix, keyed_vectors.vectors)


def test_binary_at_fault(tmp_path, keyed_vectors):
    path = tmp_path / "v.bin"
    keyed_vectors.vectors[2, 1] = np.nan
    keyed_vectors.save_word2vec_format(str(path), binary=True)
    with pytest.raises(InputError, match="the vector of 'zürich' is not finite"):
        read_vectors(path, {"the"})
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="cannot be read as word2vec binary"):
        read_vectors(path)


def test_fasttext_binary(tmp_path):
    models = pytest.importorskip("gensim.models")
    sentences = [["ein", "Haus", "ein"], ["Haus", "und", "Hof"]]
    model = models.FastText(
        sentences, vector_size=5, min_count=1, bucket=20, epochs=1, seed=1, workers=1
    )
    path = tmp_path / "cc.de.bin"
    models.fasttext.save_facebook_model(model, str(path))
    table = read_vectors(path)
    assert sorted(table.index) == ["Haus", "Hof", "ein", "und"]
    for word, row in table.index.items():
        np.testing.assert_allclose(table.matrix[row], model.wv[word], rtol=1e-6)
    vectors_end = len(path.read_bytes()) - 4 * 5 * 4 - 17  # the matrix after it is not read
    whole = path.read_bytes()[:vectors_end]
    path.write_bytes(whole)
    assert len(read_vectors(path)) == 4
    packed = tmp_path / "cc.de.bin.gz"
    packed.write_bytes(gzip.compress(whole))
    np.testing.assert_array_equal(read_vectors(packed).matrix, table.matrix)
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(InputError, match=r"cc\.de\.bin"):
            read_vectors(path)


@pytest.mark.parametrize(
    ("number", "value", "message"),
    [
        (2, 10**9, "5 rows of 5 numbers for 3 words of width 1000000000"),
        (10, 2**31 - 1, "rows of 5 numbers for 3 words"),
        (10, -1, "rows of 5 numbers for 3 words"),
        (14, 2**31 - 1, "cut short"),
        (14, -5, "words"),
        (16, 1, "a classifier, which has no vectors of words"),
    ],
)
def test_fasttext_sizes_that_are_not_its_own(tmp_path, number, value, message):
    """A number of the header is another one; gensim would make room for it, or read on forever."""
    content = fasttext()
    at = 4 * number + 8 * (number > 13)
    (tmp_path / "v.bin").write_bytes(content[:at] + struct.pack("<i", value) + content[at + 4 :])
    with pytest.raises(InputError, match=message):
        read_vectors(tmp_path / "v.bin")


# A file that is asked again and again.


def test_asking_again(write):
    file = VectorFile(write("\ufeff" + TEXT), wanted={"Paris"})
    assert as_lists(file.table) == {"Paris": [1, 2, 3], "paris": [4, 5, 6]}
    assert as_lists(file.rows(["paris", "x", "THE", "paris"])) == {"paris": [4, 5, 6]}
    assert as_lists(file.rows(iter(["the"]))) == {"the": [0.5, -1, np.float32(0.2)]}
    assert file.rows([]).matrix.shape == (0, 3)
    assert file.rows(["x"]).matrix.shape == (0, 3)


def test_words_of_one_hash_are_told_apart(write, monkeypatch):
    name = "ncrf.data.vector_files.word_hashes"
    monkeypatch.setattr(name, lambda words: np.full(len(words), 7, np.uint32))
    file = VectorFile(write("a 1 2\nb 3 4\na 5 6\nc 7 8\n"))
    assert as_lists(file.rows("cabd")) == {"c": [7, 8], "a": [1, 2], "b": [3, 4]}
    monkeypatch.setattr(name, lambda words: np.array(list(map(len, words)), np.uint32))
    file = VectorFile(write("".join(f"w{i % 30} {i} 0.5\n" for i in range(300))))
    for i in range(30):
        assert as_lists(file.rows([f"w{i}"])) == {f"w{i}": [i, 0.5]}


def test_a_file_changed_in_use(write):
    path = write(TEXT)
    file = VectorFile(path)
    path.write_text("x" + TEXT)
    with pytest.raises(InputError, match="changed while it was in use"):
        file.rows(["the"])
    path.unlink()
    with pytest.raises(InputError, match="changed while it was in use"):
        file.rows(["the"])


def test_several_threads(write):
    path = write("".join(f"w{i} {i} {-i}\n" for i in range(500)))
    file, wrong = VectorFile(path), []

    def ask(start: int) -> None:
        for i in range(start, 500, 4):
            if as_lists(file.rows([f"w{i}"])) != {f"w{i}": [i, -i]}:
                wrong.append(i)

    threads = [threading.Thread(target=ask, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_is_bounded_by_a_few_bytes_a_row(write, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 1 << 14)
    row = " 0.125" * 50
    path = write("".join(f"word{i}{row}\n" for i in range(10_000)))
    tracemalloc.start()
    file = VectorFile(path, {"word7"})
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 10_000 * 30  # the matrix would be 10_000 * 200
    assert len(file.rows(["word9999"])) == 1


NUMBERS = st.lists(
    st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3
)
WORDS = st.text(
    st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1, max_size=8
).filter(lambda word: word.strip(" ") == word and not word.startswith("\ufeff"))


@settings(derandomize=True, deadline=None)
@given(st.dictionaries(WORDS, NUMBERS, min_size=1), st.sampled_from([3, 40, 1 << 20]))
def test_any_words_and_numbers_come_back(tmp_path_factory, vectors, block):
    path = tmp_path_factory.mktemp("any") / "v.txt"
    rows = [f"{word} {' '.join(map(repr, numbers))}\n" for word, numbers in vectors.items()]
    path.write_bytes("".join([f"{len(rows)} 3\n", *rows]).encode())
    expected = {word: list(map(np.float32, numbers)) for word, numbers in vectors.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "BLOCK_BYTES", block)
        assert both_ways(path) == [expected, expected]
