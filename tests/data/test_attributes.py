"""Attributes of words against text that is put together word by word."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncrf.data.attributes import AttributeVocabulary
from ncrf.data.templates import Templates, parse_templates, textbook_templates
from ncrf.errors import InputError
from tests.template_oracle import attribute, columns_of

# The sentence of CRF++'s documentation; the third word is the current one.
HE = [["He", "PRP"], ["reckons", "VBZ"], ["the", "DT"], ["current", "JJ"], ["account", "NN"]]


def build(lines, corpus, cutoff=1):
    templates = parse_templates(enumerate(lines, 1), "template")
    return AttributeVocabulary.build(templates, *columns_of(corpus), cutoff)


def texts(vocabulary, attributes, t):
    """The attributes of word t, in the order of the templates; None for none."""
    found = []
    for ids, strings in (
        (attributes.unigram[t], vocabulary.unigram_strings),
        (attributes.bigram[t], vocabulary.bigram_strings),
    ):
        found += [strings([a])[0] if a >= 0 else None for a in ids.tolist()]
    return found


def test_the_examples_of_the_crfpp_documentation():
    lines = ["U%x[0,0]", "U%x[0,1]", "U%x[-1,0]", "U%x[-2,1]", "U%x[0,0]/%x[0,1]", "UABC%x[0,1]123"]
    vocabulary, attributes = build(lines, [(HE, None)])
    expected = ["Uthe", "UDT", "Ureckons", "UPRP", "Uthe/DT", "UABCDT123"]
    assert texts(vocabulary, attributes, 2) == expected


def test_beyond_the_ends():
    lines = ["U0:%x[-2,0]", "U1:%x[-1,0]", "U2:%x[1,0]", "U3:%x[2,0]", "B0:%x[-2,0]", "B1:%x[1,0]"]
    two = [["a"], ["b"]]
    vocabulary, attributes = build(lines, [(two, None)])
    first = ["U0:_B-2", "U1:_B-1", "U2:b", "U3:_B+1", None, None]
    second = ["U0:_B-1", "U1:a", "U2:_B+1", "U3:_B+2", "B0:_B-1", "B1:_B+1"]
    assert texts(vocabulary, attributes, 0) == first
    assert texts(vocabulary, attributes, 1) == second


LINES = (
    "U",
    "U00:%x[0,0]",
    "U:%x[-1,0]",
    "U:%x[1,1]",
    "U01:%x[-2,0]/%x[0,1]",
    "U02:%x[-1,1]|%x[0,0]|%x[3,1]",
    "U03%v[0,1]",
    "U04%v[-1,1]+%v[0,1]",
    "B",
    "B01:%x[0,0]",
    "B02:%x[-1,0]-%v[1,1]",
)
CELLS = st.tuples(st.sampled_from("abc"), st.sampled_from(["a", "d", "d:2", "e:-0.5"])).map(list)
CORPORA = st.lists(st.lists(CELLS, max_size=5).map(lambda rows: (rows, None)), max_size=4)


def values_of(attributes, t):
    unigram, bigram = attributes.unigram[t], attributes.bigram[t]
    ones = np.ones(len(unigram)), np.ones(len(bigram))
    found = (attributes.unigram_values, attributes.bigram_values)
    return np.concatenate([o if v is None else v[t] for o, v in zip(ones, found, strict=True)])


@settings(max_examples=60, deadline=None)
@given(CORPORA, CORPORA, st.lists(st.sampled_from(LINES), min_size=1, max_size=6, unique=True))
def test_any_corpus_has_the_attributes_that_the_lines_spell(corpus, other, lines):
    lines = sorted(lines)  # bigram templates first, then unigram ones, each in order
    vocabulary, attributes = build(lines, corpus)
    known = {text for kind in "UB" for text in strings_of(vocabulary, kind)}
    assert len(known) == vocabulary.num_unigram + vocabulary.num_bigram
    order = [line for line in lines if line[0] == "U"]
    order += [line for line in lines if line[0] == "B" and line != "B"]
    for data in (corpus, other):
        encoded = vocabulary.encode(*columns_of(data)) if data and any(r for r, _ in data) else None
        found = attributes if data is corpus else encoded
        if found is None:
            continue
        t = 0
        for rows, _ in data:
            for place in range(len(rows)):
                spelled = [attribute(line, rows, place) for line in order]
                spelled = [
                    (None, 1) if (line[0] == "B" and not place) or text not in known else (text, v)
                    for line, (text, v) in zip(order, spelled, strict=True)
                ]
                assert texts(vocabulary, found, t) == [text for text, _ in spelled]
                for (text, value), v in zip(spelled, values_of(found, t), strict=True):
                    assert text is None or value == pytest.approx(v)
                t += 1
        if data is corpus and encoded is not None:
            assert np.array_equal(encoded.unigram, attributes.unigram)
            assert np.array_equal(encoded.bigram, attributes.bigram)


def strings_of(vocabulary, kind):
    return vocabulary.unigram_strings() if kind == "U" else vocabulary.bigram_strings()


def test_lines_with_the_same_text_have_their_attributes_in_common():
    vocabulary, attributes = build(["U:%x[-1,0]", "U:%x[1,0]"], [([["a"], ["b"], ["a"]], None)])
    assert sorted(vocabulary.unigram_strings()) == ["U:_B+1", "U:_B-1", "U:a", "U:b"]
    assert texts(vocabulary, attributes, 1) == ["U:a", "U:a"]


def test_what_stands_between_macros_keeps_them_apart_even_where_words_have_it():
    rows = [["a/b", "c"], ["a", "b/c"]]
    vocabulary, attributes = build(["U:%x[0,0]/%x[0,1]"], [(rows, None)])
    assert attributes.unigram[0] != attributes.unigram[1]
    assert vocabulary.unigram_strings() == ["U:a/b/c"] * 2


def test_a_cutoff_counts_attributes_over_the_corpus():
    corpus = [([[w] for w in "abacab"], None), ([["b"]], None)]
    lines = ["U:%x[0,0]", "B:%x[-1,0]/%x[0,0]"]
    for cutoff in (1, 2, 3, 4):
        vocabulary, attributes = build(lines, corpus, cutoff)
        words = {f"U:{w}" for w, n in Counter("abacabb").items() if n >= cutoff}
        pairs = {
            f"B:{w}" for w, n in Counter(["a/b", "b/a", "a/c", "c/a", "a/b"]).items() if n >= cutoff
        }
        assert set(vocabulary.unigram_strings()) == words
        assert set(vocabulary.bigram_strings()) == pairs
        assert texts(vocabulary, attributes, 3)[0] == ("U:c" if cutoff == 1 else None)
        assert set(vocabulary.strings) == {w[2:] for w in words} | set(
            "".join(p[2:].replace("/", "") for p in pairs)
        )


def test_a_wrong_value_is_named_with_its_place():
    rows = [["a", "x:1"], ["b", "y:z"]]
    with pytest.raises(InputError) as caught:
        build(["U:%x[0,0]", "U:%v[0,1]"], [([["c", "x"]], None), (rows, None)])
    assert str(caught.value).startswith(
        "template:2: %v at word 2 of sentence 2: no number after the colon in 'y:z' ("
    )


def test_values_of_one_are_not_kept():
    _, attributes = build(["U:%v[0,0]"], [([["a"], ["b:1"]], None)])
    assert attributes.unigram_values is None


def test_a_vocabulary_through_json_and_arrays():
    corpus = [(HE, None), (HE[1:4], None)]
    lines = ["U", "U0:%x[0,0]", "U1:%x[-1,0]/%x[0,1]/%x[1,0]", "B", "B0:%x[0,1]"]
    vocabulary, attributes = build(lines, corpus)
    data = json.loads(json.dumps(vocabulary.to_json()))
    arrays = vocabulary.arrays()
    assert all(array.dtype == np.int32 for array in arrays.values())
    again = AttributeVocabulary.from_json(data, arrays)
    assert again.unigram_strings() == vocabulary.unigram_strings()
    assert again.bigram_strings() == vocabulary.bigram_strings()
    found = again.encode(*columns_of(corpus))
    assert np.array_equal(found.unigram, attributes.unigram)
    assert np.array_equal(found.bigram, attributes.bigram)
    with pytest.raises(ValueError, match="keys of attributes"):
        AttributeVocabulary.from_json(data, {"attribute_keys": arrays["attribute_keys"][:-1]})
    with pytest.raises(ValueError, match="string that there is not"):
        AttributeVocabulary.from_json({**data, "strings": ["a"]}, arrays)


def test_attributes_can_be_dropped():
    vocabulary, _ = build(["U0:%x[0,0]", "B0:%x[0,1]"], [(HE, None)])
    keep = np.array([text == "U0:the" for text in vocabulary.unigram_strings()])
    smaller = vocabulary.kept(keep, np.zeros(vocabulary.num_bigram, np.bool_))
    assert smaller.unigram_strings() == ["U0:the"]
    assert smaller.num_bigram == 0
    assert smaller.strings == ["the"]
    found = smaller.encode(*columns_of([(HE, None)]))
    assert found.unigram.reshape(-1).tolist() == [-1, -1, 0, -1, -1]
    assert (found.bigram == -1).all()


def test_many_macros_do_not_overflow():
    rng = np.random.default_rng(0)
    rows = [[f"w{n}"] for n in rng.integers(0, 3000, 2000)]
    line = "U:" + "/".join(f"%x[{row},0]" for row in range(-6, 7))
    vocabulary, attributes = build([line], [(rows, None)])
    assert vocabulary.num_unigram == 2000
    assert texts(vocabulary, attributes, 77) == [attribute(line, rows, 77)[0]]


def test_textbook_rules_end_at_head_and_tail():
    templates = textbook_templates([[1], [-2]], [[0]])
    columns, offsets = columns_of([([["a"], ["b"]], None)])
    vocabulary, attributes = AttributeVocabulary.build(templates, columns, offsets)
    # Rules in order: [1], [-2], then [0] at the head and at the tail; at last [0] in between.
    assert texts(vocabulary, attributes, 0) == ["U[1]:b", None, "Bhead[0]:a", None, None]
    second = ["U[1]:_B+1", "U[-2]:_B-1", None, "Btail[0]:_B+1", "B[0]:b"]
    assert texts(vocabulary, attributes, 1) == second


def test_rules_and_lines_side_by_side_keep_their_own_ends():
    lines = parse_templates([(1, "U0:%x[-2,0]")]).lines
    templates = Templates(textbook_templates([[-2]], []).lines + lines)
    columns, offsets = columns_of([([["a"], ["b"]], None)])
    vocabulary, attributes = AttributeVocabulary.build(templates, columns, offsets)
    assert texts(vocabulary, attributes, 0) == [None, "U0:_B-2"]


def test_a_new_string_beside_known_ones_is_no_attribute():
    known = [[a, p] for a in "abc" for p in "pqr"]
    vocabulary, _ = build(["U:%x[0,0]/%x[0,1]"], [(known, None)])
    for new in (["b", "new"], ["new", "q"], ["c", "a"], ["q", "p"]):
        found = vocabulary.encode(*columns_of([([new, ["b", "q"]], None)]))
        assert texts(vocabulary, found, 0) == [None]
        assert texts(vocabulary, found, 1) == ["U:b/q"]


def test_an_empty_corpus():
    vocabulary, attributes = build(["U0:%x[0,0]", "U1:%x[-1,0]/%x[0,0]", "B"], [])
    assert (vocabulary.num_unigram, attributes.unigram.shape) == (0, (0, 2))
    found = vocabulary.encode(*columns_of([([["a"]], None)]))
    assert found.unigram.tolist() == [[-1, -1]]
