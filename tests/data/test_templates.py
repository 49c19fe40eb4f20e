"""Template files read as CRF++ reads them; textbook rules; cells with values."""

import pytest

from ncrf.data.templates import (
    Macro,
    Templates,
    boundary,
    parse_templates,
    read_templates,
    split_value,
    textbook_templates,
)
from ncrf.errors import InputError


def parse(*lines):
    return parse_templates(enumerate(lines, 1), "template")


def test_comments_and_blank_lines_are_skipped_and_lines_counted(tmp_path):
    path = tmp_path / "template"
    path.write_text("# Unigram\n\nU00:%x[-2,0]\r\n  \n#U01:%x[0,9]\nB\n", encoding="utf-8")
    templates = read_templates(path)
    assert [(t.kind, t.line) for t in templates.lines] == [("U", 3), ("B", 6)]
    assert templates.lines[0].text == ("U00:", "")
    assert templates.lines[0].macros == (Macro(-2, 0),)
    assert templates.transitions


def test_text_around_macros_stands_for_itself():
    (template,) = parse("UABC%x[0,1]12%x[-10,3]3").lines
    assert template.text == ("UABC", "12", "3")
    assert template.macros == (Macro(0, 1), Macro(-10, 3))
    assert template.fill(["DT", "He"]) == "UABCDT12He3"


def test_bigram_lines_are_transitions_or_look_at_words():
    templates = parse("U", "B", "B01", "B02:%x[0,0]")
    assert templates.transitions
    assert [t.line for t in templates.bigram] == [4]
    assert not parse("U", "B02:%x[0,0]").transitions


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("U00:%y[0,0]", "unknown macro %y[0,0]"),
        ("U00:%x[0]", "unknown macro %x[0]"),
        ("U00:%x[0,-1]", "unknown macro %x[0,-1]"),
        ("U00:%x", "unknown macro %x"),
        ("U00:100%", "unknown macro %"),
        ("X00:%x[0,0]", "a template begins with 'X'"),
    ],
)
def test_what_is_no_template_is_named_with_its_line(line, what):
    with pytest.raises(InputError) as caught:
        parse("U00:%x[0,0]", line)
    assert str(caught.value).startswith(f"template:2: {what} (")


def test_a_file_without_templates_is_an_error():
    with pytest.raises(InputError, match="template: holds no templates"):
        parse("# nothing", "")


def test_a_column_that_the_corpus_lacks_is_named_with_line_and_columns():
    templates = parse("U00:%x[0,1]", "U01:%x[0,0]/%x[-1,2]")
    templates.check_columns(["word", "POS", "chunk"])
    with pytest.raises(InputError) as caught:
        templates.check_columns(["word", "POS"])
    assert str(caught.value) == (
        "template:2: column 2 in U01:%x[0,0]/%x[-1,2] "
        "(the corpus has the columns 0 (word), 1 (POS))"
    )


def test_json_round_trip():
    templates = parse("U00:%v[-1,0]/%x[0,1]", "B")
    again = Templates.from_json(templates.to_json(), "template")
    assert again == templates
    rules = textbook_templates([[0, 1]], [[-1]])
    assert Templates.from_json(rules.to_json()) == rules


def test_boundary_tokens():
    assert [boundary(step) for step in (-2, -1, 1, 2)] == ["_B-2", "_B-1", "_B+1", "_B+2"]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("length:0.5", ("length", 0.5)),
        ("length", ("length", 1.0)),
        (r"12\:30", ("12:30", 1.0)),
        (r"12\:30:-2e3", ("12:30", -2000.0)),
        (r"a\\:3", ("a\\", 3.0)),
        ("a\\", ("a\\", 1.0)),
        (":2", ("", 2.0)),
    ],
)
def test_values_of_cells(cell, expected):
    assert split_value(cell) == expected


@pytest.mark.parametrize("cell", ["a:b", "a:", "a:1:2", "a:nan", "a:inf"])
def test_values_that_are_no_numbers(cell):
    with pytest.raises(ValueError, match=r".*"):
        split_value(cell)
