import pytest

from ncrf.data.columns import ColumnFormat, read_columns
from ncrf.errors import InputError

TEXT = """\
# newdoc
# text = Vámonos al mar
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\tV\tMood=Imp|Person=1\t0\troot\t_\tSpaceAfter=No|Entity=B-X|NER=O
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\tIN\t_\t5\tcase\t_\tNER=
# a comment between
4\tel\tel\tDET\tDT\t_\t5\tdet\t_\tNERD=B-PER
4.1\tnada\t_\tVERB\t_\t_\t_\t_\t_\t_
5\tmar azul\tmar\tNOUN\tNN\t_\t1\tobl:arg\t_\tNER=B-LOC=x|Gloss=sea

1\t#\t#\tSYM\t_\t_\t0\troot\t_\t_
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_words_are_counted_without_ranges_and_empty_nodes(path):
    reader = read_columns(path, file_format="conllu")
    first, second = reader
    assert first.words == ["Vamos", "nos", "a", "el", "mar azul"]
    assert second.words == ["#"]
    assert [first.line_of(i) for i in range(5)] == [4, 5, 7, 9, 11]
    assert second.line_of(0) == 13
    assert (reader.sentences, reader.tokens, reader.separator) == (2, 6, "\t")


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        ("upos", ["VERB", "PRON", "ADP", "DET", "NOUN"]),
        ("XPOS", ["V", "_", "IN", "DT", "NN"]),
        ("feats", ["Mood=Imp|Person=1", "_", "_", "_", "_"]),
        ("deprel", ["root", "obj", "case", "det", "obl:arg"]),
        ("misc:NER", ["O", "_", "_", "_", "B-LOC=x"]),
        ("misc:Entity", ["B-X", "_", "_", "_", "_"]),
    ],
)
def test_label_columns(path, column, labels):
    sentence = next(iter(read_columns(path, file_format="conllu", label_column=column)))
    assert sentence.labels == labels


@pytest.mark.parametrize("column", ["pos", "misc", "misc:", "form"])
def test_unknown_label_column(path, column):
    with pytest.raises(InputError, match=f"label_column={column} .*misc:KEY"):
        read_columns(path, file_format="conllu", label_column=column)


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("1\ta\tb", "3 columns found, expected 10"),
        ("x\ta\tb\tc\td\te\tf\tg\th\ti", "'x' is no word number"),
        ("1-\ta\tb\tc\td\te\tf\tg\th\ti", "'1-' is no word number"),
        ("1\t\tb\tc\td\te\tf\tg\th\ti", "a cell is empty"),
        ("1\ta\tb\t\td\te\tf\tg\th\ti", "a cell is empty"),
    ],
)
def test_rows_at_fault(tmp_path, row, what):
    path = tmp_path / "bad"
    path.write_text(f"# x\n{row}\n")
    with pytest.raises(InputError, match=what) as caught:
        list(read_columns(path, file_format="conllu"))
    assert caught.value.line == 2


def test_rows_can_be_written_with_other_labels(path):
    reader = read_columns(path, file_format="conllu", keep_rows=True)
    second = list(reader)[1]
    assert reader.format == ColumnFormat(("-", "word", "-", "label", *["-"] * 6), "\t")
    assert list(reader.format.row_lines(second, ["X"])) == ["1\t#\t#\tX\t_\t_\t0\troot\t_\t_", ""]


def test_a_lone_docstart_is_a_boundary(tmp_path):
    path = tmp_path / "doc.conllu"
    rows = ["1\t-DOCSTART-" + "\t_" * 8, "", "1\tHi\t_\tINTJ" + "\t_" * 6, ""]
    path.write_text("\n".join(rows) + "\n")
    boundary, sentence = read_columns(path, file_format="conllu")
    assert boundary.boundary and boundary.labels is None and boundary.words == ["-DOCSTART-"]
    assert not sentence.boundary and sentence.labels == ["INTJ"]
