import gzip
import re
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncrf.data import text_files
from ncrf.data.column_layout import parse_columns
from ncrf.data.columns import ColumnFormat, CorpusReader, Sentence, read_columns
from ncrf.errors import InputError


@pytest.fixture
def corpus(tmp_path):
    """A function that writes a corpus and returns its reader."""

    def reader(content: str | bytes, name: str = "corpus", **options) -> CorpusReader:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_columns(path, **options)

    return reader


def content_of(reader: CorpusReader) -> list[tuple[list[str], list[str] | None]]:
    return [(sentence.words, sentence.labels) for sentence in reader]


def error_of(reader: CorpusReader) -> InputError:
    with pytest.raises(InputError) as caught:
        list(reader)
    assert str(caught.value).startswith(f"{reader.path}:{caught.value.line}: ")
    return caught.value


# The default reading: word, [NAME]value cells, label.


def test_word_and_label(corpus):
    reader = corpus("Anna B-PER\nleft O\n\nShe O\n")
    assert content_of(reader) == [(["Anna", "left"], ["B-PER", "O"]), (["She"], ["O"])]
    assert reader.format == ColumnFormat(("word", "label"), " ")
    assert (reader.sentences, reader.tokens, reader.boundaries) == (2, 3, 0)


def test_feature_cells_lose_their_prefix(corpus):
    reader = corpus("EU [Cap]1 [POS]NN]P S-ORG\nrejects [Cap]0 [POS] O\n")
    (sentence,) = reader
    assert sentence.features == {"Cap": ["1", "0"], "POS": ["NN]P", ""]}
    assert sentence.labels == ["S-ORG", "O"]
    assert reader.format == ColumnFormat(("word", "[Cap]", "[POS]", "label"), " ")
    assert reader.format.features == ("Cap", "POS")


def test_middle_column_without_prefix_suggests_a_columns_line(corpus):
    error = error_of(corpus("\nEU NNP [chunk]I-NP I-ORG\n"))
    assert error.line == 2
    assert "column 2 of 4, 'NNP', has no [NAME] prefix" in str(error)
    assert "columns=word,-,[chunk],label" in str(error)


def test_the_suggested_columns_line_can_be_read(corpus):
    error = error_of(corpus("EU NNP [chunk]I-NP I-ORG\n"))
    columns = re.search(r"columns=(\S+?),? where", str(error))[1]
    (sentence,) = corpus("EU NNP [chunk]I-NP I-ORG\n", columns=columns)
    assert (sentence.words, sentence.labels) == (["EU"], ["I-ORG"])
    assert sentence.features == {"chunk": ["I-NP"]}


def test_comment_line_without_comment_prefix_suggests_one(corpus):
    comment = str(error_of(corpus("# text = EU rejects\nEU\tO\n")))
    assert "comment_prefix=#" in comment and "file_format=conllu" in comment
    with pytest.raises(InputError, match="raw_format=lines"):
        list(corpus("Anna met Bo in Oslo\n", labels="optional"))


def test_feature_cell_that_loses_its_prefix_later(corpus):
    error = error_of(corpus("a [Cap]1 O\n\nb [Cap]1 O\nc [POS]1 O\n"))
    assert error.line == 4
    assert "'[POS]1', has no prefix [Cap]" in str(error)


def test_same_feature_twice(corpus):
    assert "two columns are feature [Cap]" in str(error_of(corpus("a [Cap]1 [Cap]0 O\n")))


def test_one_column_where_labels_are_needed(corpus):
    error = error_of(corpus("Anna\n"))
    assert (error.line, "1 column found" in str(error)) == (1, True)


@pytest.mark.parametrize(
    ("row", "found"),
    [("x", "1 column found, 'x'"), ("x y z", "3 columns found, 'x', 'y', 'z'")],
)
def test_wrong_number_of_columns(corpus, row, found):
    error = error_of(corpus(f"a O\n\nb O\n{row}\n"))
    assert error.line == 4
    assert found in str(error)
    assert "expected 2 (word, label)" in str(error)


def test_error_shows_only_the_beginning_of_a_monstrous_row(corpus):
    error = error_of(corpus("a\tO\n" + "\t".join(["y" * 5000] * 500)))
    assert len(str(error)) < 700


# Separators.


def test_auto_takes_tab_if_the_first_line_has_one(corpus):
    reader = corpus("\n \nông già\tB-PER\nđi\tO\n")
    assert content_of(reader) == [(["ông già", "đi"], ["B-PER", "O"])]
    assert (reader.format.separator, reader.separator) == ("\t", "\t")


def test_runs_of_spaces_separate(corpus):
    reader = corpus("a  O\nb   O \n c O\n")
    assert content_of(reader) == [(["a", "b", "c"], ["O", "O", "O"])]
    assert reader.separator == " "


def test_no_break_and_ideographic_spaces_belong_to_words(corpus):
    reader = corpus("10\xa0000 O\n\u3000 O\n\xa0 O\n\u2028 O\n")
    assert content_of(reader) == [(["10\xa0000", "\u3000", "\xa0", "\u2028"], ["O"] * 4)]


def test_a_line_of_one_ideographic_space_is_a_word(corpus):
    reader = corpus("a\n\u3000\nb\n", labels="optional")
    assert content_of(reader) == [(["a", "\u3000", "b"], None)]


def test_declared_separator_rules(corpus):
    assert content_of(corpus("a b\tO\n", separator="tab")) == [(["a b"], ["O"])]
    assert content_of(corpus("a\tb O\n", separator="space")) == [(["a\tb"], ["O"])]
    assert error_of(corpus("a O\n", separator="tab")).line == 1


def test_tab_file_is_not_cut_at_spaces(corpus):
    assert error_of(corpus("a\tO\nb O\n")).line == 2


def test_unknown_separator_is_refused_at_once(corpus):
    with pytest.raises(InputError, match=r"column_separator=comma \(one of auto, tab, space\)"):
        corpus("", separator="comma")


def test_empty_word_and_empty_label(corpus):
    assert "the word is empty" in str(error_of(corpus("a\tO\n\tO\n")))
    error = error_of(corpus("a\tO\nb\t\n"))
    assert (error.line, error.what) == (2, "the label is empty")


def test_skipped_cells_and_features_may_be_empty(corpus):
    (sentence,) = corpus("a\t\t\tO\nb\tx\ty\tO\n", columns="word,-,[f],label")
    assert (sentence.words, sentence.features) == (["a", "b"], {"f": ["", "y"]})
    (sentence,) = corpus("a\t\n", columns="word,-", labels="optional")
    assert (sentence.words, sentence.labels) == (["a"], None)


# Where sentences end.


@pytest.mark.parametrize("blank", ["", "\t", " ", " \t ", "\t\t", "\r"])
@pytest.mark.parametrize("separator", ["\t", " "])
def test_blank_lines_close_sentences(corpus, blank, separator):
    text = f"{blank}\na{separator}O\n{blank}\n{blank}\nb{separator}O\nc{separator}O"
    reader = corpus(text)
    assert [sentence.words for sentence in reader] == [["a"], ["b", "c"]]
    assert [sentence.line for sentence in reader] == [2, 5]


def test_byte_order_mark_and_crlf(corpus):
    reader = corpus(b"\xef\xbb\xbfa\tO\r\nb\tB-X\r\n\r\nc\tO\r\n")
    assert content_of(reader) == [(["a", "b"], ["O", "B-X"]), (["c"], ["O"])]


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_empty_files_have_no_sentence(corpus, content):
    reader = corpus(content)
    assert list(reader) == []
    assert (reader.format, reader.sentences, reader.tokens) == (None, 0, 0)


def test_sentences_know_their_lines(corpus):
    reader = corpus("# x\n\na O\n# y\nb O\n\nc O\nd O\n", comment_prefix="#")
    first, second = reader
    assert first.file == str(reader.path)
    assert [first.line_of(i) for i in range(2)] == [3, 5]
    assert [second.line_of(i) for i in range(2)] == [7, 8]


def test_comments_only_where_they_are_asked_for(corpus):
    text = "# O\n#x O\na O\n"
    assert content_of(corpus(text)) == [(["#", "#x", "a"], ["O"] * 3)]
    assert content_of(corpus(text, comment_prefix="#")) == [(["a"], ["O"])]
    assert content_of(corpus(text, comment_prefix="#x")) == [(["#", "a"], ["O"] * 2)]


def test_a_comment_does_not_close_a_sentence_nor_decide_the_separator(corpus):
    reader = corpus("#\ta\na O\n# c\nb O\n", comment_prefix="#")
    assert content_of(reader) == [(["a", "b"], ["O", "O"])]


def test_invalid_utf8(corpus):
    error = error_of(corpus(b"a O\n\nM\xfcller O\n"))
    assert error.line == 3


def test_the_first_mistake_of_a_file_is_the_one_reported(corpus):
    assert error_of(corpus(b"a O\nb\n\xff O\n")).line == 2


def test_long_sentences_and_words(corpus):
    word = "x" * 3000
    (sentence,) = corpus(f"{word} O\n" * 1500)
    assert sentence.words == [word] * 1500


# Declared columns.


def test_conll_2003_as_distributed(corpus):
    text = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n"
    reader = corpus(text, columns="word,[POS],[chunk],label")
    boundary, sentence = reader
    assert boundary.boundary and boundary.labels is None and boundary.words == ["-DOCSTART-"]
    assert sentence.labels == ["I-ORG", "O"]
    assert sentence.features == {"POS": ["NNP", "VBZ"], "chunk": ["I-NP", "I-VP"]}
    assert (reader.sentences, reader.tokens, reader.boundaries) == (1, 2, 1)


def test_five_columns_with_comments(corpus):
    text = "# sent_id = 1\n1\t#x\tO\t-\t-\n2\tb\tB-PER\t-\tc\n\n"
    reader = corpus(text, columns=("-", "word", "label", "-", "-"), comment_prefix="#")
    assert content_of(reader) == [(["#x", "b"], ["O", "B-PER"])]


def test_declared_feature_cells_in_prefixed_form_mean_the_same(corpus):
    (plain,) = corpus("a NN O\nb VB O\n", columns="word,[POS],label")
    (prefixed,) = corpus("a [POS]NN O\nb [POS]VB O\n", columns="word,[POS],label")
    assert plain.features == prefixed.features == {"POS": ["NN", "VB"]}


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ("label,-", "no column is the word"),
        ("word,word,label", "word stands there more than once"),
        ("word,label,label", "label stands there more than once"),
        ("word,[a],[a],label", r"\[a\] stands there more than once"),
        ("word,pos,label", "column 2 is 'pos'"),
        ("word,[],label", r"column 2 is '\[\]'"),
        ("", "column 1 is ''"),
    ],
)
def test_wrong_column_lists(columns, what):
    with pytest.raises(InputError, match=what):
        parse_columns(columns)


def test_column_lists_are_read_loosely():
    assert parse_columns(" Word, [POS] ,-,LABEL") == ("word", "[POS]", "-", "label")


def test_labels_needed_but_not_declared(corpus):
    with pytest.raises(InputError, match="columns=word,- has no label column"):
        corpus("a b\n", columns="word,-")
    assert content_of(corpus("a b\n", columns="word,-", labels="optional")) == [(["a"], None)]


# Files without labels.


def test_raw_file_of_words(corpus):
    reader = corpus("Anna\nleft\n\nShe\n", labels="optional")
    assert content_of(reader) == [(["Anna", "left"], None), (["She"], None)]
    assert reader.format == ColumnFormat(("word",), " ")


def test_raw_file_with_labels_keeps_them(corpus):
    assert content_of(corpus("Anna X\n", labels="optional")) == [(["Anna"], ["X"])]


def test_raw_file_with_known_features_only(corpus):
    text = "Anna [Cap]1 [POS]NNP\nleft [Cap]0 [POS]VBD\n"
    reader = corpus(text, labels="optional", features=("Cap", "POS"))
    (sentence,) = reader
    assert sentence.labels is None
    assert sentence.features == {"Cap": ["1", "0"], "POS": ["NNP", "VBD"]}
    assert reader.format.columns == ("word", "[Cap]", "[POS]")


def test_raw_file_with_features_and_labels(corpus):
    (sentence,) = corpus("Anna [Cap]1 O\n", labels="optional", features=("Cap",))
    assert (sentence.labels, sentence.features) == (["O"], {"Cap": ["1"]})


def test_a_label_may_look_like_an_unknown_feature(corpus):
    (sentence,) = corpus("Anna [X]1\n", labels="optional", features=("Cap",))
    assert sentence.labels == ["[X]1"]


def test_declared_label_column_may_be_absent(corpus):
    options = {"columns": "word,[POS],label", "labels": "optional"}
    (bare,) = corpus("Anna NNP\nleft VBD\n", **options)
    assert (bare.labels, bare.features) == (None, {"POS": ["NNP", "VBD"]})
    (full,) = corpus("Anna NNP S-PER\n", **options)
    assert full.labels == ["S-PER"]
    (middle,) = corpus("1 a - -\n", columns="-,word,label,-,-", labels="optional")
    assert (middle.words, middle.labels) == (["a"], None)


@pytest.mark.parametrize("rows", ["a\nb O\n", "a O\nb\n"])
@pytest.mark.parametrize("columns", [None, "word,label"])
def test_the_first_row_decides_about_labels(corpus, rows, columns):
    error = error_of(corpus(rows, columns=columns, labels="optional"))
    assert error.line == 2


def test_declared_width_is_named_when_the_first_row_fits_neither_way(corpus):
    error = error_of(corpus("a\n", columns="word,[POS],label", labels="optional"))
    assert "1 column found, 'a', expected 3 (word, [POS], label)" in str(error)


# Document boundaries.


@pytest.mark.parametrize("row", ["-DOCSTART-", "-DOCSTART- O", "-DOCSTART- -X- O O"])
def test_boundaries_of_any_width_settle_nothing(corpus, row):
    reader = corpus(f"{row}\n\na O\n\n{row}\n\n{row}\n\nb O\n")
    assert [s.boundary for s in reader] == [True, False, True, True, False]
    assert reader.format.columns == ("word", "label")
    assert (reader.sentences, reader.tokens, reader.boundaries) == (2, 2, 3)
    assert [s.line for s in reader] == [1, 3, 5, 7, 9]


def test_a_bare_boundary_before_a_tab_file(corpus):
    reader = corpus("-DOCSTART-\n\na b\tO\n")
    assert [s.words for s in reader] == [["-DOCSTART-"], ["a b"]]


def test_boundary_where_the_word_is_not_first(corpus):
    columns = "-,word,label"
    reader = corpus("1\t-DOCSTART-\tO\n\n1\ta\tO\n\n1\t-DOCSTART-\tO\n", columns=columns)
    assert [s.boundary for s in reader] == [True, False, True]


def test_docstart_among_words_is_a_word(corpus):
    reader = corpus("-DOCSTART- O\na O\n\nb O\n-DOCSTART- O\n")
    assert [s.boundary for s in reader] == [False, False]
    assert reader.tokens == 4
    assert error_of(corpus("a O\n\n-DOCSTART-\nb O\n")).line == 3
    assert error_of(corpus("-DOCSTART-\nb O\n")).line == 1
    assert error_of(corpus("b O\n-DOCSTART-\n")).line == 2


def test_only_boundaries(corpus):
    reader = corpus("-DOCSTART-\n")
    assert [s.boundary for s in reader] == [True]
    assert reader.format is None


# Raw text, a sentence a line.


def test_lines(corpus):
    reader = corpus("Anna  left\n\n \n#tag 10\xa0000\n-DOCSTART-\nend", raw_format="lines")
    sentences = list(reader)
    expected = [["Anna", "left"], [], [], ["#tag", "10\xa0000"], ["-DOCSTART-"], ["end"]]
    assert [s.words for s in sentences] == expected
    assert [s.line for s in sentences] == [1, 2, 3, 4, 5, 6]
    assert [s.boundary for s in sentences] == [False] * 4 + [True, False]
    assert all(s.labels is None and s.features == {} for s in sentences)
    assert (reader.sentences, reader.tokens, reader.boundaries) == (5, 5, 1)
    assert reader.separator == " "


def test_lines_need_none_of_the_models_file_keys(corpus):
    """The model's columns and comments are the defaults at decode, and mean other files."""
    options = {"columns": "-,word,label", "separator": "tab", "comment_prefix": "#"}
    reader = corpus("# a\tb\n", raw_format="lines", file_format="conllu", **options)
    assert [s.words for s in reader] == [["#", "a", "b"]]


# Where files come from.


def test_gzip_and_two_passes(corpus):
    reader = corpus(gzip.compress(b"a O\n\nb O\n"), name="c.conll.gz")
    assert content_of(reader) == content_of(reader) == [(["a"], ["O"]), (["b"], ["O"])]
    assert reader.sentences == 2


def test_standard_input(tmp_path, monkeypatch):
    path = tmp_path / "in"
    path.write_text("a O\nb\n")
    with open(path, "rb") as stream:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stream))
        with pytest.raises(InputError, match="<stdin>:2: 1 column found"):
            list(read_columns("-"))


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        list(read_columns(tmp_path / "none"))


def test_reading_is_lazy_and_its_memory_constant(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 1 << 14)
    path: Path = tmp_path / "big"
    path.write_text("word\tO\nword\tO\n\n" * 30_000)
    reader = read_columns(path)
    assert next(iter(reader)).words == ["word", "word"]
    tracemalloc.start()
    for _ in reader:
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reader.tokens == 60_000
    assert peak < 1_000_000


# Rows kept for writing them again.


def test_rows_and_comments_are_written_as_they_stood(corpus):
    text = "# id\n1\ta\tO\t\t-\n2\tb\tB-X\t-\tc d\n\n-DOCSTART-\n\n1\te\tO\t-\t-\n\n"
    options = {"columns": "-,word,label,-,-", "comment_prefix": "#"}
    reader = corpus(text, keep_rows=True, **options)
    lines = [line for s in reader for line in reader.format.row_lines(s)]
    assert "\n".join(lines) + "\n" == text
    first = next(iter(reader))
    assert list(reader.format.row_lines(first, ["S-Y", "O"]))[1:3] == [
        "1\ta\tS-Y\t\t-",
        "2\tb\tO\t-\tc d",
    ]


def test_rows_are_kept_only_when_asked_for(corpus):
    reader = corpus("# c\na O\n", comment_prefix="#")
    (sentence,) = reader
    assert (sentence.rows, sentence.comments) == (None, [])
    with pytest.raises(ValueError, match="without its rows"):
        list(reader.format.row_lines(sentence))


WORD = st.text(
    st.characters(exclude_characters="\t\n\r\ufeff", exclude_categories=["Cs"]), min_size=1
).filter(lambda word: word.strip(" ") and word != "-DOCSTART-")
ROW = st.tuples(WORD, WORD)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.lists(ROW, min_size=1), max_size=5), st.sampled_from([3, 50, 1 << 20]))
def test_any_words_and_labels_come_back(tmp_path_factory, sentences, block):
    path = tmp_path_factory.mktemp("any") / "corpus"
    text = "".join("".join(f"{w}\t{y}\n" for w, y in rows) + "\n" for rows in sentences)
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "BLOCK_BYTES", block)
        found: list[Sentence] = list(read_columns(path))
    assert [list(zip(s.words, s.labels, strict=True)) for s in found] == sentences
