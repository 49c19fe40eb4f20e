"""Span scores and accuracy; the oracles are seqeval and counts made by hand."""

import logging
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import accuracy_score, sequence_labeling, v1
from seqeval.scheme import IOB2, IOBES

from ncrf.data.labels import spans
from ncrf.errors import InputError
from ncrf.evaluate.spans import (
    SpanReader,
    SpanScorer,
    TypeScore,
    score_accuracy,
    score_label_ids,
    score_spans,
)


@st.composite
def corpora(draw, prefixes):
    """Gold and predicted label sequences, ill-formed ones among them, of equal lengths."""
    labels = ["O", *(f"{p}-{t}" for p in prefixes for t in ("A", "B-C", "a"))]
    label = st.sampled_from(labels)
    gold, predicted = [], []
    for size in draw(st.lists(st.integers(1, 6), min_size=1, max_size=5)):
        row = draw(st.lists(label, min_size=size, max_size=size))
        kept = draw(st.lists(st.booleans(), min_size=size, max_size=size))
        gold.append(row)
        predicted.append([g if k else draw(label) for g, k in zip(row, kept, strict=True)])
    return gold, predicted


def seqeval_scores(gold, predicted, average):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sequence_labeling.precision_recall_fscore_support(
            gold, predicted, average=average, zero_division=0
        )


def assert_equals_seqeval(score, gold, predicted):
    precision, recall, f1, support = seqeval_scores(gold, predicted, "micro")
    assert [score.precision, score.recall, score.f1] == pytest.approx([precision, recall, f1])
    assert score.gold == support
    rows = zip(*seqeval_scores(gold, predicted, None), strict=True)
    ours = score.per_type.values()
    for type_score, (precision, recall, f1, support) in zip(ours, rows, strict=True):
        assert type_score.support == support
        assert [type_score.precision, type_score.recall, type_score.f1] == pytest.approx(
            [precision, recall, f1]
        )
    assert score.accuracy == pytest.approx(accuracy_score(gold, predicted))
    assert score.sentences == len(gold)
    assert score.tokens == sum(map(len, gold))


@given(corpora("BI"))
def test_bio_and_iob1_scores_are_seqevals(corpus):
    assert_equals_seqeval(score_spans(*corpus), *corpus)


@given(corpora("BIES"))
def test_bioes_scores_are_seqevals(corpus):
    # conlleval.pl itself deviates here, see test_labels.test_spans_are_seqevals.
    assert_equals_seqeval(score_spans(*corpus), *corpus)


@pytest.mark.parametrize(
    ("prefixes", "scheme", "oracle"), [("BI", "BIO", IOB2), ("BIES", "BIOES", IOBES)]
)
def test_strict_scores_are_seqevals_strict_ones(prefixes, scheme, oracle):
    @given(corpora(prefixes))
    def check(corpus):
        score = score_spans(*corpus, policy="strict", scheme=scheme)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            precision, recall, f1, support = v1.precision_recall_fscore_support(
                *corpus, average="micro", scheme=oracle, zero_division=0
            )
        assert [score.precision, score.recall, score.f1] == pytest.approx([precision, recall, f1])
        assert score.gold == support

    check()


MIXED = ["O", "B-A", "I-A", "E-A", "S-A", "b-B", "M-B", "L-A", "U-B", "NN"]


@given(
    st.lists(st.lists(st.sampled_from(MIXED), max_size=5)),
    st.sampled_from(["IOB1", "IOB2", "BIOES", "BMES", "BILOU"]),
    st.sampled_from(["conlleval", "strict"]),
)
def test_the_array_reader_reads_what_the_sentence_reader_reads(sentences, scheme, policy):
    # Empty sentences stand anywhere among the others.
    labels = sorted({label for sentence in sentences for label in sentence})
    ids = np.array([labels.index(x) for row in sentences for x in row], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in sentences])]).astype(np.int64)
    reader = SpanReader(labels, policy=policy, scheme=scheme)
    found = reader.read(ids, offsets)
    one_by_one = [
        (span.label, span.start + offset, span.end + offset)
        for row, offset in zip(sentences, offsets[:-1], strict=True)
        for span in spans(row, scheme=scheme, policy=policy)
    ]
    types = [reader.types[kind] for kind in found.type]
    assert list(zip(types, found.start, found.end, strict=True)) == one_by_one


def test_counts_by_hand():
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG"]]
    predicted = [["B-PER", "I-PER", "O", "B-ORG"], ["I-ORG", "I-ORG"]]
    score = score_spans(gold, predicted)
    assert (score.gold, score.predicted, score.correct) == (3, 3, 1)
    assert (score.sentences, score.tokens, score.correct_tokens) == (2, 6, 3)
    assert score.precision == score.recall == score.f1 == pytest.approx(1 / 3)
    assert score.accuracy == 0.5
    assert score.per_type == {
        "LOC": TypeScore(support=1, predicted=0, correct=0),
        "ORG": TypeScore(support=1, predicted=2, correct=0),
        "PER": TypeScore(support=1, predicted=1, correct=1),
    }
    assert list(score.per_type) == ["LOC", "ORG", "PER"]
    assert score.kind == "spans"


def test_a_span_across_a_gap_is_not_joined():
    # NCRF++ counts B … E with something else between as one entity.
    gold, predicted = [["B-A", "I-A", "E-A"]], [["B-A", "O", "E-A"]]
    score = score_spans(gold, predicted)
    assert (score.predicted, score.correct) == (2, 0)
    assert score_spans(gold, predicted, policy="strict").predicted == 0


def test_strict_detects_the_scheme_from_gold():
    gold = [["I-A", "O", "I-A", "B-A"]]  # IOB1: in IOB2 nothing but the last would count
    assert score_spans(gold, gold, policy="strict").correct == 3


def test_prefixes_of_either_case_are_the_same_label():
    score = score_spans([["B-A", "I-A", "O"]], [["b-A", "i-A", "o"]])
    assert score.f1 == score.accuracy == 1.0
    assert score_spans([["B-A"]], [["B-a"]]).accuracy == 0.0


def test_another_delimiter():
    assert score_spans([["B_A-X"]], [["B_A-X"]], delimiter="_").per_type.keys() == {"A-X"}


def test_a_label_that_gold_alone_has_counts_as_an_error():
    # The model does not know B-NEW: its id lies behind the model's own.
    labels = ["O", "B-A", "B-NEW"]
    gold, predicted = np.array([1, 2, 0]), np.array([1, 1, 0])
    score = SpanScorer(labels).score(gold, predicted, np.array([0, 2, 3]))
    assert (score.gold, score.predicted, score.correct) == (2, 2, 1)
    assert score.recall == 0.5
    with pytest.raises(ValueError, match="3 labels"):
        SpanScorer(labels).score(np.array([1, -1, 0]), predicted, np.array([0, 2, 3]))
    with pytest.raises(ValueError, match="3 labels"):
        SpanScorer(labels).score(np.array([1, 3, 0]), predicted, np.array([0, 2, 3]))


def test_arrays_that_do_not_fit_are_refused():
    scorer = SpanScorer(["O", "B-A"])
    ids = np.array([0, 1])
    with pytest.raises(ValueError, match="offsets"):
        scorer.score(ids, ids, np.array([0, 1]))
    with pytest.raises(ValueError, match="2 gold labels and 1"):
        scorer.score(ids, ids[:1], np.array([0, 2]))


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([["O", "O"], ["O"]], [["O", "O"], ["O", "O"]], "sentence 2 has 1 gold labels and 2"),
        ([["O"], ["O"]], [["O"]], "1 predicted sentences, but gold has more"),
        ([["O"]], [["O"], ["O"]], "1 gold sentences"),
    ],
)
def test_gold_and_predicted_of_unequal_size(gold, predicted, message):
    for score in (score_spans, score_accuracy):
        with pytest.raises(InputError, match=message):
            score(gold, predicted)


def test_policies_have_names_and_strict_needs_a_scheme():
    with pytest.raises(InputError, match="score_policy 'lenient'"):
        SpanReader(["O"], policy="lenient")
    with pytest.raises(InputError, match="needs a scheme"):
        SpanReader(["O"], policy="strict")
    with pytest.raises(InputError, match="plain"):
        SpanReader(["O"], policy="strict", scheme="plain")


@pytest.mark.parametrize("score", [score_spans, score_accuracy])
@pytest.mark.parametrize("corpus", [[], [[]]])
def test_nothing_to_score_is_zero_with_a_warning(score, corpus, caplog):
    with caplog.at_level(logging.WARNING, logger="ncrf"):
        result = score(corpus, corpus)
    assert "nothing to score" in caplog.text
    assert (result.precision, result.recall, result.f1, result.accuracy) == (0, 0, 0, 0)
    assert result.per_type == {} and result.sentences == len(corpus)


def test_a_corpus_without_spans_scores_zero_with_a_warning(caplog):
    with caplog.at_level(logging.WARNING, logger="ncrf"):
        score = score_spans([["O", "O"]], [["O", "O"]])
    assert "no spans" in caplog.text
    assert (score.precision, score.recall, score.f1, score.accuracy) == (0, 0, 0, 1)
    caplog.clear()
    assert score_spans([["O"]], [["B-A"]]).per_type == {"A": TypeScore(0, 1, 0)}
    score_spans([["B-A"]], [["O"]])
    assert caplog.text.count("no spans") == 1  # gold with spans is no reason to warn


def test_accuracy_of_plain_labels():
    gold = [["NOUN", "VERB", "NOUN"], ["DET", "NOUN"]]
    predicted = [["NOUN", "NOUN", "NOUN"], ["ADJ", "VERB"]]
    score = score_accuracy(gold, predicted)
    assert score.kind == "labels"
    assert score.accuracy == score.precision == score.recall == score.f1 == pytest.approx(2 / 5)
    assert score.per_type == {
        "ADJ": TypeScore(support=0, predicted=1, correct=0),
        "DET": TypeScore(support=1, predicted=0, correct=0),
        "NOUN": TypeScore(support=3, predicted=3, correct=2),
        "VERB": TypeScore(support=1, predicted=1, correct=0),
    }
    assert score.per_type["NOUN"].f1 == pytest.approx(2 / 3)
    labels = ["NOUN", "VERB", "DET", "ADJ", "NEVER"]
    same = score_label_ids(
        labels, np.array([0, 1, 0, 2, 0]), np.array([0, 0, 0, 3, 1]), sentences=2
    )
    assert same == score


def test_plain_labels_are_compared_as_they_stand():
    assert score_accuracy([["b-A"]], [["B-A"]]).accuracy == 0.0


def test_generators_do():
    gold = [["B-A", "O"], ["O"]]
    assert score_spans(iter(gold), (row for row in gold)).f1 == 1.0
