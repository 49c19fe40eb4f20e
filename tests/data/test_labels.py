"""Reading single labels and the spans of sequences; the oracle of spans is seqeval."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU, IOB2, IOBES, Entities

from ncrf.data.labels import Span, join_label, mark, scheme_name, spans, split_label
from ncrf.errors import InputError


def sequences(prefixes, types=("PER", "LOC", "GOODS-X"), max_size=10):
    """Random label sequences, most of them ill-formed."""
    labels = ["O", *(f"{p}-{t}" for p in prefixes for t in types)]
    return st.lists(st.sampled_from(labels), max_size=max_size)


def seqeval_spans(labels):
    """What seqeval's default mode reads; its borders are inclusive."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns at prefixes beyond B I E S
        return [Span(kind, first, last + 1) for kind, first, last in get_entities(labels)]


@pytest.mark.parametrize(
    ("label", "split"),
    [
        ("B-PER", ("B", "PER")),
        ("b-per", ("B", "per")),
        ("B-GOODS-X", ("B", "GOODS-X")),
        ("S--", ("S", "-")),
        ("O", ("O", "")),
        ("o", ("O", "")),
        ("_", ("O", "")),
        ("E", ("E", "")),
        ("M-", ("M", "")),
        ("NN", ("", "NN")),
        ("-LRB-", ("", "-LRB-")),
        ("BE-PER", ("", "BE-PER")),
        ("X", ("", "X")),
    ],
)
def test_split_label(label, split):
    assert split_label(label) == split


def test_other_delimiters_stand_between_prefix_and_type():
    assert split_label("B_PER", "_") == ("B", "PER")
    assert split_label("B_PER_X", "_") == ("B", "PER_X")
    assert split_label("B::PER-X", "::") == ("B", "PER-X")
    assert split_label("_", "_") == ("O", "")
    assert join_label("B", "PER_X", "_") == "B_PER_X"
    with pytest.raises(InputError, match="label_delimiter"):
        split_label("BPER", "")


@pytest.mark.parametrize("label", ["B-PER", "S", "O", "NN", "I-GOODS-X"])
def test_join_label_undoes_split_label(label):
    assert join_label(*split_label(label)) == label


def test_scheme_names_in_any_case_and_their_aliases():
    assert [scheme_name(n) for n in ("bio", "iob1", "IOBES", "Plain")] == [
        "IOB2",
        "IOB1",
        "BIOES",
        "plain",
    ]
    with pytest.raises(InputError, match=r"BIEOS.*IOB1, IOB2, BIOES"):
        scheme_name("BIEOS")


@given(sequences("BIES"))
def test_spans_are_seqevals(labels):
    # seqeval's default mode is conlleval.pl's reading for B and I. With E it leaves conlleval.pl,
    # for which no span begins at the B of E-X B-X and which does not know S at all. The contract
    # follows seqeval there, so seqeval is the oracle; conlleval.pl is for scripts/check_conlleval.
    assert spans(labels) == seqeval_spans(labels)


@given(sequences("BIMELSU", types=("A", "B")))
def test_m_l_u_are_read_as_i_e_s(labels):
    renamed = [
        label.translate(str.maketrans("MLU", "IES")) if label[1:] else label for label in labels
    ]
    assert spans(labels) == seqeval_spans(renamed)


@given(st.lists(st.sampled_from(["B", "I", "E", "S", "O"]), max_size=8))
def test_bare_labels_are_spans_without_a_type(labels):
    expected = [span._replace(label="") for span in seqeval_spans(labels)]  # seqeval says "_"
    assert spans(labels) == expected


@given(sequences("BI"), st.data())
def test_case_of_the_prefix_does_not_matter(labels, data):
    lower = [
        label[0].lower() + label[1:] if data.draw(st.booleans()) else label for label in labels
    ]
    assert spans(lower) == spans(labels)


def test_case_of_the_type_does():
    assert spans(["B-PER", "I-per"]) == [("PER", 0, 1), ("per", 1, 2)]


def test_a_label_without_a_prefix_stands_outside():
    assert spans(["B-PER", "NN", "I-PER", "_", "O-PER"]) == [("PER", 0, 1), ("PER", 2, 3)]
    assert not mark("O-PER").inside


@pytest.mark.parametrize(
    ("scheme", "prefixes", "oracle"),
    [("IOB2", "BI", IOB2), ("BIOES", "BIES", IOBES), ("BILOU", "BILU", BILOU)],
)
def test_strict_spans_are_seqevals_strict_ones(scheme, prefixes, oracle):
    @given(sequences(prefixes))
    def check(labels):
        found = [
            (entity.tag, entity.start, entity.end)
            for entity in Entities([labels], scheme=oracle).entities[0]
        ]
        assert spans(labels, scheme=scheme, policy="strict") == found

    check()


@pytest.mark.parametrize(
    ("scheme", "labels", "kept"),
    [
        ("IOB1", "I-A B-A O B-A", [(0, 1), (1, 2)]),  # no need for the B after O
        ("IOB1", "I-A I-B B-B B-A", [(0, 1), (1, 2), (2, 3)]),
        ("IOB2", "I-A O B-A I-A S-A", [(2, 4)]),  # S is not IOB2's
        ("IOB2", "B-A E-A B-A", [(2, 3)]),
        ("BMES", "B-A M-A E-A B-A I-A E-A S-A", [(0, 3), (6, 7)]),
        ("BIOES", "B-A B-A E-A I-A E-A", [(1, 3)]),
    ],
)
def test_strict_spans_of_a_scheme(scheme, labels, kept):
    # seqeval's strict IOB1 is no oracle: it reads O B-X I-X as a span of the second word alone.
    found = spans(labels.split(), scheme=scheme, policy="strict")
    assert [(span.start, span.end) for span in found] == kept


def test_strict_needs_a_scheme_with_spans_and_policies_have_names():
    for scheme, policy in ((None, "strict"), ("plain", "strict"), ("IOB2", "lenient")):
        with pytest.raises(InputError):
            spans(["B-A"], scheme=scheme, policy=policy)
