"""Detecting, converting and checking label schemes."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncrf.data.labels import Span, spans
from ncrf.data.schemes import SchemeDetector, convert, detect_scheme, faults, write_labels
from ncrf.errors import InputError

SPAN_SCHEMES = ("IOB1", "IOB2", "BIOES", "BMES", "BILOU")

# Penn Treebank tags as English UD corpora have them in XPOS, and the universal ones.
XPOS = "NN IN DT NNP , PRP . VB S -LRB- -RRB- HYPH `` '' PRP$ WP$ $ : LS SYM ADD NFP GW"
UPOS = "NOUN PUNCT VERB PRON ADP DET ADJ AUX PROPN ADV CCONJ PART NUM SCONJ SYM INTJ X"
# Vietnamese treebank tags: many of them are letters that are also prefixes.
LETTERS = "N V E A M L C R P I T X S Nc CH B"


@st.composite
def layouts(draw, types=("PER", "GOODS-X")):
    """A sentence's length and spans on it."""
    found, at = [], 0
    for kind, gap, size in draw(
        st.lists(st.tuples(st.sampled_from(types), st.integers(0, 2), st.integers(1, 3)))
    ):
        found.append((kind, at + gap, at + gap + size))
        at += gap + size
    return at + draw(st.integers(0, 2)), found


def named(layout):
    return [Span(*span) for span in layout]


def detect(*sentences, delimiter="-"):
    return detect_scheme([sentence.split() for sentence in sentences], delimiter)


@pytest.mark.parametrize(
    ("scheme", "sentences"),
    [
        ("IOB2", ["B-PER I-PER O", "B-LOC"]),
        ("IOB2", ["O B-GOODS-X O"]),
        ("IOB2", ["b-per i-per O"]),
        ("IOB2", ["O O", "O"]),
        ("IOB2", ["B-A B-A", "B-A I-A", "O I-A"]),  # ill-formed once: still most begin with B
        ("IOB1", ["I-PER I-PER O", "I-LOC"]),
        ("IOB1", ["I-PER B-PER I-PER B-PER O"]),
        ("IOB1", ["I-PER I-LOC O"]),
        ("BIOES", ["B-PER E-PER O S-LOC B-A I-A E-A"]),
        ("BIOES", ["S-PER O"]),
        ("BIOES", ["s-PER O b-A e-A"]),
        ("BIOES", ["B-PER E-PER O S-PER"]),  # without I or M: the usual one for types
        ("BMES", ["B-PER M-PER E-PER O"]),
        ("BMES", ["B E S S B M M E"]),
        ("BMES", ["B E S", "S"]),
        ("BIOES", ["B I E S"]),
        ("IOB2", ["B I I B"]),
        ("BILOU", ["B-PER I-PER L-PER O U-LOC"]),
        ("BILOU", ["U-LOC O"]),
        ("plain", ["NOUN VERB", "X"]),
        ("plain", [XPOS]),
        ("plain", [UPOS]),
        ("plain", [LETTERS, "E E E M M"]),
        ("plain", ["S M L M"]),  # sizes
        ("plain", ["M E"]),
        ("plain", ["B_X I_X NN"]),
        ("plain", ["B_X I/X"]),
        ("plain", ["Case=Nom _ Case=Acc|Number=Sing"]),
        ("plain", ["acl:relcl nsubj", "B-X nsubj"]),
        ("plain", ["positive", "negative"]),
        ("IOB2", ["_ _ B-PER I-PER _"]),  # a key of CoNLL-U's MISC column
    ],
)
def test_schemes_are_told_apart_by_their_prefixes(scheme, sentences):
    assert detect(*sentences) == scheme


@given(st.lists(layouts(), min_size=1, max_size=5), st.sampled_from(SPAN_SCHEMES))
def test_a_corpus_is_detected_as_a_scheme_that_says_the_same(corpus, scheme):
    labels = [write_labels(named(layout), length, scheme) for length, layout in corpus]
    detected = detect_scheme(labels)
    assert not any(faults(sentence, detected) for sentence in labels)


def test_detection_is_one_pass_over_a_stream():
    detector = SchemeDetector()
    for _ in range(3):
        detector.feed(["I-A", "O"])
    assert detector.scheme() == "IOB1"
    detector.feed(["S-A"])
    with pytest.raises(InputError, match="prefixes I, S"):
        detector.scheme()


def test_another_delimiter_is_read_when_it_is_set():
    assert detect("B_PER I_PER O", delimiter="_") == "IOB2"
    assert detect("B-PER I-PER O", delimiter="-") == "IOB2"


@pytest.mark.parametrize(
    ("sentence", "delimiter", "hint"),
    [
        ("O B_PER I_PER", "-", "label_delimiter=_"),
        ("B_GOODS-X O", "-", "label_delimiter=_"),
        ("b/PER S/LOC", "-", "label_delimiter=/"),
        ("B-PER O", "_", "label_delimiter=-"),
    ],
)
def test_labels_with_another_delimiter_are_refused_with_the_hint(sentence, delimiter, hint):
    detector = SchemeDetector(delimiter)
    detector.feed(["O"], file="train.txt", line=1)
    detector.feed(sentence.split(), file="train.txt", line=3)
    with pytest.raises(InputError, match=r"^train\.txt:3: ") as caught:
        detector.scheme()
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("sentence", "named"),
    [
        ("B-PER I-PER O B-LOC PER", "'PER'"),  # a slip among prefixed labels
        ("B-PER M-PER I-PER E-PER", "B, E, I, M"),
        ("I-NP E-NP I-NP O", "E, I"),  # IOE
        ("U-A S-A", "S, U"),
    ],
)
def test_a_mixture_is_refused_with_the_place(sentence, named):
    detector = SchemeDetector()
    detector.feed(sentence.split(), file="train.txt", line=7)
    with pytest.raises(InputError, match=r"^train\.txt:7: .*input_scheme=") as caught:
        detector.scheme()
    assert named in str(caught.value)


@given(layouts(), st.sampled_from(SPAN_SCHEMES))
def test_labels_say_the_spans_they_were_written_for(laid, scheme):
    length, layout = laid
    labels = write_labels(named(layout), length, scheme)
    assert len(labels) == length
    assert spans(labels) == layout
    assert spans(labels, scheme=scheme, policy="strict") == layout
    assert faults(labels, scheme) == []


@given(layouts(types=("A", "")))
def test_conversion_between_all_schemes(laid):
    length, layout = laid
    written = {scheme: write_labels(named(layout), length, scheme) for scheme in SPAN_SCHEMES}
    for source, target in product(SPAN_SCHEMES, repeat=2):
        assert convert(written[source], source, target) == written[target]


@pytest.mark.parametrize(
    ("source", "labels", "target", "expected"),
    [
        ("IOB1", "I-A I-A B-A I-B O", "BIO", "B-A I-A B-A B-B O"),
        ("IOB1", "I-A I-A B-A I-B O", "BIOES", "B-A E-A S-A S-B O"),
        ("BIO", "B-A B-A I-A B-B O B-B", "IOB1", "I-A B-A I-A I-B O I-B"),
        ("BIOES", "S-A B-A E-A S-B", "IOB1", "I-A B-A I-A I-B"),
        ("BMES", "B M E S B E", "BIO", "B I I B B I"),
        ("BMES", "S S O S", "IOB1", "I B O I"),
        ("BILOU", "B-A I-A L-A U-A", "BMES", "B-A M-A E-A S-A"),
        ("BIO", "b-GOODS-X i-GOODS-X o", "bioes", "B-GOODS-X E-GOODS-X O"),
        ("BIO", "I-A I-B O I-B", "BIO", "B-A B-B O B-B"),  # ill-formed: conlleval's spans
        ("BIOES", "B-A B-A I-A O E-A", "BIO", "B-A B-A I-A O B-A"),
        ("plain", "NN VB", "plain", "NN VB"),
        ("BIO", "", "IOB1", ""),
        ("BIO", "_ B-A", "BIO", "O B-A"),
    ],
)
def test_conversions(source, labels, target, expected):
    assert convert(labels.split(), source, target) == expected.split()


def test_conversion_keeps_the_delimiter():
    assert convert(["B_A", "I_A", "O"], "BIO", "BIOES", "_") == ["B_A", "E_A", "O"]


@given(st.lists(st.sampled_from(["O", "B-A", "I-A", "E-A", "S-A", "I-B"]), max_size=8))
def test_conversion_keeps_what_conlleval_reads(labels):
    for target in SPAN_SCHEMES:
        assert spans(convert(labels, "BIOES", target)) == spans(labels)


def test_what_cannot_be_converted_is_an_error():
    with pytest.raises(InputError, match="'NN'"):
        convert(["B-A", "NN"], "BIO", "BIOES")
    for source, target in (("plain", "BIO"), ("BIO", "plain")):
        with pytest.raises(InputError, match="plain labels have no spans"):
            convert(["O"], source, target)
    with pytest.raises(InputError, match="BOI"):
        convert(["O"], "BIO", "BOI")


@pytest.mark.parametrize("layout", [[("A", 1, 3), ("A", 2, 4)], [("A", 2, 2)], [("A", 3, 5)]])
def test_spans_that_do_not_fit_cannot_be_written(layout):
    with pytest.raises(ValueError, match="in 4 words"):
        write_labels(named(layout), 4, "BIO")


@pytest.mark.parametrize(
    ("scheme", "labels", "expected"),
    [
        ("BIO", "B-A I-A O B-A", []),
        ("BIO", "I-A O I-A", [(0, "I-A at the start of a sentence"), (2, "I-A after O")]),
        ("BIO", "B-A I-B", [(1, "I-B after B-A")]),
        ("BIO", "O S-A I-A I-B", [(1, "S-A is no label of IOB2"), (3, "I-B after I-A")]),
        ("BIOES", "B-A M-A E-A", [(1, "M-A is no label of BIOES")]),
        ("BIOES", "B-A M-A", [(1, "M-A is no label of BIOES")]),
        ("BIO", "O NN O", [(1, "NN is no label of IOB2")]),
        ("BIOES", "B-A O B-A", [(1, "O after B-A"), (2, "B-A at the end of a sentence")]),
        ("BIOES", "S-A E-A", [(1, "E-A after S-A")]),
        ("BMES", "B M S", [(2, "S after M")]),
        ("IOB1", "I-A B-A O B-A", [(3, "B-A after O")]),
        ("plain", "B-A NN I-A", []),
        ("BIO", "", []),
    ],
)
def test_faults_name_position_and_reason(scheme, labels, expected):
    assert faults(labels.split(), scheme) == expected
