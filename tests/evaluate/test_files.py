"""Scoring files: how gold and predicted ones are laid out."""

import io
import re

import pytest

from ncrf.config import load_config
from ncrf.errors import InputError
from ncrf.evaluate.files import score_columns, score_files

GOLD = "Anna B-PER\nLind I-PER\nleft O\n\nOslo B-LOC\n\n"
# One of the two persons' words, the place right: one of two phrases found.
FOUND = ["B-PER", "O", "O", "B-LOC"]


@pytest.fixture
def score(tmp_path):
    """Score one text against another; ``oracle`` and config keys may be given."""

    def run(gold, predicted, *, oracle=False, **keys):
        paths = [tmp_path / "gold", tmp_path / "predicted"]
        for path, text in zip(paths, (gold, predicted), strict=True):
            path.write_text(text, encoding="utf-8")
        config = load_config(keys, check_files=False)
        return score_files(config, *map(str, paths), oracle=oracle)

    return run


def rows(template, labels=FOUND):
    """The four words in two sentences, each row as ``template`` has it."""
    words = ["Anna", "Lind", "left", "Oslo"]
    lines = [template.format(word=w, label=x) for w, x in zip(words, labels, strict=True)]
    return "\n".join([*lines[:3], "", *lines[3:], ""])


def counts(score):
    return score.correct, score.predicted, score.gold, score.tokens


RIGHT = (1, 2, 2, 4)


class TestColumns:
    @pytest.mark.parametrize(
        ("template", "keys"),
        [
            ("{word} {label}", {}),
            ("{word}\t{label}", {}),
            ("{word} [POS]X {label}", {}),
            ("{word} X B-LOC {label}", {}),
            ("# a comment\n{word} {label}", {"comment_prefix": "# "}),
            ("{word} {label} 0.5", {}),
            ("{word} {label} 1e-05", {}),
            ("{word} {label} 1", {}),
        ],
    )
    def test_word_first_and_label_last(self, template, keys, score):
        assert counts(score(GOLD, rows(template), **keys)) == RIGHT

    @pytest.mark.parametrize(
        ("columns", "template"),
        [
            ("label,-,word", "{label} B-LOC {word}"),
            ("label,-,word", "{word} {label}"),  # as decoding writes it
            ("word,label,-", "{word} {label} O"),
            ("word,[POS],label", "{word} [POS]X {label}"),
            ("word,-,label", "{word} {label} 0.25"),  # decoded with marginals
            ("word,-,label", "{word} B-LOC {label} 0.25"),
        ],
    )
    def test_like_the_gold_file_where_it_is_as_wide(self, columns, template, score):
        cells = {"word": "{word}", "label": "{label}", "-": "X", "[POS]": "Y"}
        gold = " ".join(cells[column] for column in columns.split(","))
        gold = rows(gold, ["B-PER", "I-PER", "O", "B-LOC"])
        assert counts(score(gold, rows(template), columns=columns)) == RIGHT

    def test_labels_that_are_numbers_are_no_probabilities(self, score):
        gold = rows("{word} X {label}", ["0", "1", "0", "1"])
        found = rows("{word} 1 {label}", ["0", "0", "0", "1"])
        result = score(gold, found, columns="word,-,label")
        assert (result.kind, result.correct_tokens) == ("labels", 3)

    def test_document_boundaries_count_for_nothing(self, score):
        predicted = "-DOCSTART- O\n\n" + rows("{word} {label}")
        assert counts(score("-DOCSTART- O\n\n" + GOLD, predicted)) == RIGHT
        assert counts(score(GOLD, predicted)) == RIGHT

    def test_a_hash_may_be_a_word(self, score):
        text = "# O\n1 O\n\nOslo B-LOC\n"
        assert counts(score(text, text)) == (1, 1, 1, 3)
        numbers = "# 1\nx 0\n\n"
        assert score(numbers, numbers).correct_tokens == 2

    def test_delimiter_scheme_and_policy_are_the_configs(self, score):
        gold = GOLD.replace("-", "_")
        predicted = rows("{word} {label}", ["I_PER", "I_PER", "O", "B_LOC"])
        assert counts(score(gold, predicted, label_delimiter="_")) == (2, 2, 2, 4)
        strict = score(gold, predicted, label_delimiter="_", score_policy="strict")
        assert counts(strict) == (1, 1, 2, 4)
        plain = score(gold, predicted, input_scheme="plain")
        assert (plain.kind, plain.correct_tokens) == ("labels", 3)

    def test_one_column_alone_is_an_error(self, score):
        with pytest.raises(InputError, match="predicted:1: 1 column found"):
            score(GOLD, rows("{word}"))

    def test_a_scheme_that_cannot_be_told_is_an_error_with_the_line(self, score):
        gold = "a O\n\nb L-X\nc E-X\n\nd B-X\n"
        with pytest.raises(InputError, match="gold:3: no label scheme has the prefixes"):
            score(gold, gold)
        with pytest.raises(InputError, match="gold:4: label 'NN', in this sentence"):
            score("a B-X\nb I-X\n\nc NN\nd O\n", "a B-X\nb I-X\n\nc NN\nd O\n")

    def test_standard_input(self, tmp_path, monkeypatch):
        (tmp_path / "gold").write_text(GOLD)
        text = "# 0.5 0.25\n" + rows("{word} {label} B-LOC").replace("\n\n", "\n\n# 0.5 0.25\n")
        for given in (rows("{word} {label}"), text):
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
            config = load_config({}, check_files=False)
            assert counts(score_files(config, str(tmp_path / "gold"), "-")) == RIGHT


CONLLU = """\
# text = Dogs don't bark
1\tDogs\tdog\tNOUN\tNNS\t_\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\tbark\tbark\tVERB\tVB\t_\t0\troot\t_\t_

"""


UPOS = {"file_format": "conllu", "label_column": "upos"}


class TestConllu:
    @pytest.mark.parametrize("comment", [True, False])
    def test_against_conllu(self, comment, score):
        predicted = CONLLU.replace("PART", "ADV")
        predicted = predicted if comment else predicted.split("\n", 1)[1]
        result = score(CONLLU, predicted, **UPOS)
        assert (result.kind, result.correct_tokens, result.tokens) == ("labels", 3, 4)
        assert score(CONLLU, predicted, file_format="conllu", label_column="xpos").accuracy == 1

    def test_against_what_decoding_writes(self, score):
        predicted = "Dogs\tNOUN\ndo\tAUX\nn't\tADV\nbark\tVERB\n\n"
        assert score(CONLLU, predicted, **UPOS).correct_tokens == 3
        gold = CONLLU.replace("Dogs\tdog", "#\tdog")
        assert score(gold, predicted.replace("Dogs", "#"), **UPOS).correct_tokens == 3
        best = "# 0.5 0.1\n" + predicted.replace("\n", "\tX\n", 4)
        assert score(CONLLU, best, **UPOS).correct_tokens == 3


REVIEWS = "it was good ||| positive\nawful ||| negative\nso so ||| neutral\n"
CLASSES = {"sentence_classification": True}


class TestClassification:
    @pytest.mark.parametrize(
        "predicted",
        [
            "it was good ||| positive\n\nawful ||| neutral\nso so ||| neutral\n",
            "it was good\tpositive\nawful\tneutral\nso so\tneutral\n",
            "it was good\tpositive\t0.5\nawful\tneutral\t1\nso so\tneutral\t0.8\n",
            "it was good\tpositive 0.5\tneutral 0.25\nawful\tneutral 1\nso so\tneutral 1\t0.8\n",
        ],
    )
    def test_gold_form_and_what_decoding_writes(self, predicted, score):
        result = score(REVIEWS, predicted, **CLASSES)
        assert (result.kind, result.correct, result.tokens, result.sentences) == ("labels", 2, 3, 3)
        assert result.per_type["neutral"].predicted == 2

    def test_a_label_may_look_like_one_with_a_probability(self, score):
        gold = "a ||| grade 1\nb ||| grade 0\n"
        assert score(gold, "a\tgrade 1\nb\tgrade 0\n", **CLASSES).accuracy == 1
        best = "a\tgrade 1 0.5\tgrade 0 0.25\nb\tgrade 0 1\n"
        result = score(gold, best, **CLASSES)
        assert result.accuracy == 1 and set(result.per_type) == {"grade 0", "grade 1"}

    @pytest.mark.parametrize("predicted", ["it was good\n", "\tpositive\n", "it was good\t\n"])
    def test_what_is_no_prediction(self, predicted, score):
        with pytest.raises(InputError, match="predicted:1: no sentence and its label"):
            score(REVIEWS, predicted, **CLASSES)

    def test_other_words(self, score):
        with pytest.raises(InputError, match=r"predicted:2: 'bad' where .*gold:2 has 'awful'"):
            score(REVIEWS, "it was good\tpositive\nbad\tnegative\n", **CLASSES)


# As many labelings as there are, at most three; a document boundary has one.
NBEST = """\
# 1
-DOCSTART- O

# 0.5 0.25 0.125
Anna B-PER B-PER O
Lind O I-PER O
left O O O

# 0.9 0.1
Oslo B-LOC B-ORG

"""


class TestNbest:
    def test_the_best_is_scored(self, score):
        assert counts(score(GOLD, NBEST)) == RIGHT
        assert counts(score(GOLD, NBEST, columns="word,label")) == RIGHT

    def test_marginals_and_tabs(self, score):
        lines = [line + " 0.5" * (line[:1].isalpha()) for line in NBEST.split("\n")]
        assert counts(score(GOLD, "\n".join(lines))) == RIGHT
        tabs = [x if x.startswith("#") else x.replace(" ", "\t") for x in lines]
        text = "\n".join(tabs)
        assert counts(score(GOLD, text)) == RIGHT
        assert counts(score(GOLD.replace(" ", "\t"), text, column_separator="tab")) == RIGHT
        assert counts(score(GOLD, text, oracle=True)) == (2, 2, 2, 4)

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("# 0.9 0.1\n", "", "predicted:9: there are no probabilities before the sentence"),
            ("Lind O I-PER O", "Lind O", "predicted:6: 2 columns found, expected 4"),
            ("Lind O", "Linde O", "predicted:6: 'Linde' where .*gold:2 has 'Lind'"),
        ],
    )
    def test_mistakes_have_a_line(self, old, new, message, score):
        with pytest.raises(InputError, match=message):
            score(GOLD, NBEST.replace(old, new))


class TestOracle:
    def test_the_nearest_labeling_counts(self, score):
        """Anna Lind is second, so both phrases can be had."""
        assert counts(score(GOLD, NBEST, oracle=True)) == (2, 2, 2, 4)

    def test_by_the_f1_of_each_sentence_and_then_by_rank(self, score):
        gold = "a B-X\nb B-Y\nc O\n\nd O\n\ne B-X\n\n"
        predicted = (
            # F1 2/4, 2/3 and 2/3: the second counts
            "# 0.4 0.3 0.2\na B-X B-X O\nb O O B-Y\nc B-Z O O\n\n"
            # gold has none: the one without any is right
            "# 0.5 0.4\nd B-X O\n\n"
            # none is right: the best stays
            "# 0.5 0.4\ne B-Z O\n\n"
        )
        assert counts(score(gold, predicted)) == (1, 4, 3, 5)
        result = score(gold, predicted, oracle=True)
        assert counts(result) == (1, 2, 3, 5)
        assert (result.per_type["X"].correct, result.per_type["Z"].predicted) == (1, 1)

    def test_plain_labels_by_accuracy(self, score):
        gold = "a D\nb N\nc V\n\n"
        predicted = "# 0.5 0.2 0.1\na D N D\nb V N N\nc N V N\n\n"
        assert score(gold, predicted).correct_tokens == 1
        result = score(gold, predicted, oracle=True)
        assert (result.correct_tokens, result.per_type["V"].correct) == (2, 1)

    def test_classification(self, score):
        predicted = (
            "it was good\tpositive 0.5\tneutral 0.25\nawful\tneutral 0.9\tnegative 0.1\n"
            "so so\tpositive 0.8\tnegative 0.1\n"
        )
        assert score(REVIEWS, predicted, **CLASSES).correct == 1
        assert score(REVIEWS, predicted, oracle=True, **CLASSES).correct == 2
        with pytest.raises(InputError, match="predicted:1: not n-best output"):
            score(REVIEWS, "it was good\tpositive\n", oracle=True, **CLASSES)

    def test_it_needs_nbest_output(self, score):
        with pytest.raises(InputError, match=r"predicted:1: not n-best output.*nbest=10"):
            score(GOLD, rows("{word} {label}"), oracle=True)


class TestOneFile:
    """Gold and predicted labels side by side, as conlleval reads them."""

    @pytest.fixture
    def score(self, tmp_path):
        def run(text, **keys):
            path = tmp_path / "both"
            path.write_text(text, encoding="utf-8")
            return score_columns(load_config(keys, check_files=False), str(path))

        return run

    @pytest.mark.parametrize(
        ("template", "keys"),
        [
            ("{word} {gold} {found}", {}),
            ("{word}\t{gold}\t{found}", {}),
            ("{word} NN I-NP {gold} {found}", {}),
            ("{word} {gold} {found} 0.25", {}),
            ("{word} {gold} {found} 1", {}),
            ("{gold} x {word} y {found}", {"columns": "label,-,word,-,-"}),
            ("# said\n{word} {gold} {found}", {"comment_prefix": "# "}),
        ],
    )
    def test_the_last_column_against_the_one_before(self, template, keys, score):
        gold = [line.split() for line in GOLD.splitlines() if line]
        lines = [
            template.format(word=word, gold=label, found=found)
            for (word, label), found in zip(gold, FOUND, strict=True)
        ]
        text = "\n".join([*lines[:3], "", *lines[3:], ""])
        assert counts(score(text, **keys)) == RIGHT

    def test_plain_labels_by_accuracy(self, score):
        found = score("the DT DT\ncat NN VB\n\nruns VB VB\n")
        assert (found.tokens, found.correct_tokens) == (3, 2)
        found = score("the 0 0\ncat 1 0\n")  # labels that are numbers are no probabilities
        assert (found.tokens, found.correct_tokens) == (2, 1)

    def test_document_boundaries_count_for_nothing(self, score):
        assert score("-DOCSTART- O O\n\nBo B-PER B-PER\n").tokens == 1

    @pytest.mark.parametrize(
        ("text", "keys", "message"),
        [
            ("Bo B-PER\n", {}, "2 columns of labels and words found, expected at least 3"),
            ("Bo\n", {}, "1 column of labels and words found, expected at least 3"),
            ("Bo B-PER 0.5\n", {}, "2 columns of labels and words found, expected at least 3"),
            ("# 0.5 0.25\nBo B-PER O\n", {}, "both:1: n-best output, which has no gold"),
            ("Bo x B-PER B-PER\n", {"columns": "word,-,-,label"}, "columns=word,-,-,label"),
            ("Bo B-PER B-PER\nis O\n", {}, "both:2: "),
            ("Bo\tB-PER\t\n", {}, "both:1: "),
            ("so ||| good\n", {"sentence_classification": True}, "only a file in columns"),
            ("# x\n", {"file_format": "conllu"}, "only a file in columns"),
        ],
    )
    def test_mistakes(self, text, keys, message, score):
        with pytest.raises(InputError, match=re.escape(message)):
            score(text, **keys)
