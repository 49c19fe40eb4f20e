"""The report in Markdown and JSON: conlleval's numbers, whole tables, words of any kind."""

import json
import re

import pytest

from ncrf.data.sentence import Sentence
from ncrf.evaluate import conlleval_lines
from ncrf.evaluate.analysis import analyze
from ncrf.evaluate.analysis_json import analysis_json
from ncrf.evaluate.analysis_report import report_markdown
from ncrf.evaluate.markdown import code, name
from ncrf.evaluate.vocabulary_classes import VocabularyClasses
from tests.evaluate.test_analysis import Entity, Guess, corpus

CLASSES = VocabularyClasses({"Bo", "Ann"}, {"Bo", "EU"}, source="Where it is known from.")


@pytest.fixture
def analysis():
    gold, guesses = corpus(
        "Bo/B-PER/B-LOC met/O/O Ann/B-PER/B-PER Lee/I-PER/O",
        "Bo/B-PER/B-PER left/O/O the/O/B-ORG EU/B-ORG/I-ORG",
        "In/O/O York/B-LOC/O",
    )
    guesses[0].spans = [Entity("LOC", 0, 1, 0.55), Entity("PER", 2, 3, 0.65)]
    guesses[0].marginals = [0.5, 0.9, 0.7, 0.6]
    return analyze(gold, guesses, words=CLASSES, known_labels=["O", "B-PER", "I-PER"])


def tables(text):
    """Every table of a page: its rows as lists of cells, the header first."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        lines = block.splitlines()
        rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
        assert re.fullmatch(r"\|(---:?\|)+", lines[1])
        assert {len(row) for row in rows} == {len(rows[0])}, block
        found.append([[cell.strip() for cell in row] for row in [rows[0], *rows[2:]]])
    return found


def test_the_scores_are_conllevals_to_the_letter(analysis):
    scores = tables(report_markdown(analysis))[0]
    lines = conlleval_lines(analysis.score)
    assert lines[0].startswith("processed 10 tokens with 5 phrases; found: 4 phrases; correct: 1.")
    for row, line in zip(scores[1:], lines[1:], strict=True):
        rates = re.findall(r"(?:precision|recall|FB1): +([\d.]+)", line)
        assert row[4:] == rates
        if row[0] != "all":
            assert row[0] == line.split(":")[0].strip() and row[2] == line.split()[-1]
    assert re.search(r"accuracy: +([\d.]+)%", lines[1])[1] in report_markdown(analysis)


def test_sections_and_tables(analysis):
    text = report_markdown(analysis, "runs/x")
    assert text.startswith("# Errors of `runs/x` on `test.txt`\n\n## Scores\n\n3 sentences, 10 tok")
    assert re.findall("^## (.*)$", text, re.MULTILINE) == [
        "Scores",
        "Boundaries and types",
        "By length of the entity",
        "Confusion of types",
        "By vocabulary",
        "Calibration",
        "Most frequent errors",
    ]
    assert (
        "Labels in the file that the model does not have, always wrong: B-ORG (1), B-LOC (1)."
        in text
    )
    assert "Where it is known from." in text
    _, kinds, by_type, lengths, confusion, classes, entities, labels, errors = tables(text)
    assert kinds[1:] == [
        ["right", "1", "20.0", "25.0"],
        ["wrong type", "1", "20.0", "25.0"],
        ["wrong boundaries", "2", "40.0", "50.0"],
        ["wrong boundaries and type", "0", "0.0", "0.0"],
        ["missed", "1", "20.0", "–"],
        ["spurious", "0", "–", "0.0"],
    ]
    assert by_type[3] == ["PER", "1", "1", "1", "0", "0", "0"]
    assert [row[:4] for row in lengths[1:]] == [["1", "4", "3", "1"], ["2", "1", "1", "0"]]
    assert confusion[0] == ["gold \\ predicted", "LOC", "ORG", "PER", "no such entity"]
    assert confusion[3] == ["PER", "1", "0", "1", "1"]
    assert confusion[4] == ["no such entity", "0", "1", "1", ""]
    assert [row[:4] for row in classes[1:]] == [
        ["IV", "2", "2", "1"],
        ["OOTV", "1", "0", "0"],
        ["OOEV", "0", "1", "0"],
        ["OOBV", "2", "1", "0"],
    ]
    assert entities[1:] == [["0.5–0.6", "1", "0.550", "0.000"], ["0.6–0.7", "1", "0.650", "0.000"]]
    assert labels[1:][0] == ["0.5–0.6", "1", "0.500", "0.000"]
    assert errors[1] == [
        "`Bo` PER",
        "`Bo` LOC",
        "wrong type",
        "test.txt:1 `[[Bo]] met Ann Lee`",
        "1",
    ]


def test_plain_labels():
    gold, guesses = corpus("to/TO/IN to/IN/IN", "that/DT/IN to/TO/IN")
    text = report_markdown(analyze(gold, guesses, scheme="plain", words=CLASSES))
    scores, confusion, classes, errors = tables(text)
    assert "right labels: 25.00 % (1 of 4)" in text
    assert [row[0] for row in scores] == ["label", "DT", "IN", "TO"]
    assert confusion[1:] == [["TO", "IN", "2"], ["DT", "IN", "1"]]
    assert classes == [["class", "words", "right", "accuracy"], ["OOBV", "4", "1", "25.00"]]
    assert errors[1][-1] == "2" and errors[1][2] == "wrong label"


def test_sentences():
    gold = [Sentence(["x"] * 200, ["pos"], file="f", line=3), Sentence(["y"], ["neg"])]
    text = report_markdown(analyze(gold, [Guess(["neg"]), Guess(["neg"])], classification=True))
    _, confusion, errors = tables(text)
    assert "2 sentences; right labels: 50.00 %" in text
    assert confusion[1:] == [["neg", "1", "0"], ["pos", "1", "0"]]
    assert max(map(len, errors[1])) < 250


def test_one_type_needs_no_confusion():
    text = report_markdown(analyze(*corpus("a/B/B b/E/E c/S/B d/S/E"), scheme="BMES"))
    assert "Confusion" not in text and "By the type" not in text
    assert "| (no type) | 3 | 2 | 1 |" in text


def test_words_that_markdown_would_take_for_something():
    words = ["|", "`", "``a`", "*a*", "[x](y)", "<b>", "\x1b[2J", "$", " a", "\\"]
    gold = [Sentence(words, ["A|B", *["_"] * 9], file="f", line=1)]
    analysis = analyze(gold, [Guess(["``", *["#"] * 9])], scheme="plain", top=100)
    text = report_markdown(analysis)
    errors = tables(text)[-1]
    assert len(errors) == 1 + len(words) and "\x1b" not in text
    assert errors[1][:2] == ["`\\|` `A\\|B`", "`\\|` ``` `` ```"]
    assert {row[0] for row in errors[2:4]} == {"`` ` `` `_`", "``` ``a` ``` `_`"}


def test_names_and_code():
    assert [name(x) for x in ("NN", "GOODS-X", "PRP$", "", None, "*", "_", "a" * 200)][:7] == [
        "NN",
        "GOODS-X",
        "`PRP$`",
        "(no type)",
        "–",
        "`*`",
        "`_`",
    ]
    assert len(code("a" * 3000)) < 110 and code("ab") == "`ab`"


def test_the_same_numbers_as_json(analysis):
    value = json.loads(json.dumps(analysis_json(analysis)))
    assert value["task"] == "entities" and value["file"] == "test.txt"
    assert value["score"]["f1"] == analysis.score.f1
    assert value["score"]["per_type"]["PER"] == {
        "gold": 3,
        "predicted": 2,
        "correct": 1,
        "precision": 0.5,
        "recall": pytest.approx(1 / 3),
        "f1": 0.4,
    }
    assert value["errors"]["counts"]["boundary"] == 2
    assert value["errors"]["by_type"]["PER"]["type"] == 1
    assert {"gold": "PER", "predicted": None, "count": 1} in value["confusion"]
    assert value["by_length"]["2"]["gold"] == 1
    assert value["by_vocabulary"]["classes"]["OOTV"]["gold"] == 1
    assert value["calibration"]["entities"]["bins"][0]["mean"] == 0.55
    assert value["unknown_labels"] == {"B-ORG": 1, "B-LOC": 1}
    first = value["frequent_errors"][0]
    assert first["gold"] == {"text": "Bo", "label": "PER"} and first["example"]["line"] == 1


def test_json_without_entities_or_probabilities():
    value = analysis_json(analyze(*corpus("a/X/Y"), scheme="plain"))
    assert value["errors"] is None and value["by_length"] == {}
    assert value["calibration"] == {"entities": None, "labels": None}
