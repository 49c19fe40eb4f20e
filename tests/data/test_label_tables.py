"""Legal transitions and span masks against enumeration of every labeling."""

from itertools import pairwise, product

import numpy as np
import pytest

from ncrf.data.label_tables import legal_transitions, span_masks
from ncrf.data.labels import spans
from ncrf.data.schemes import faults
from ncrf.errors import InputError

LABELS = {
    "IOB1": ["O", "I-A", "B-A", "I-B", "B-B"],
    "IOB2": ["O", "B-A", "I-A", "B-B", "I-B"],
    "BIOES": ["E-A", "B-A", "O", "S-A", "I-A", "S-B"],
    "BMES": ["B", "M", "E", "S"],
    "BILOU": ["U-A", "B-A", "I-A", "L-A", "O"],
}


def layouts(length, types):
    """Every way to lay spans of these types on a sentence, as lists of (type, start, end)."""
    if not length:
        return [[]]
    found = list(layouts(length - 1, types))  # the last word outside
    for size in range(1, length + 1):
        for rest in layouts(length - size, types):
            found += [[*rest, (kind, length - size, length)] for kind in types]
    return found


def written(layout, length, scheme):
    """An independent writer: one word at a time, by the scheme's definition."""
    single, last, middle = {"BIOES": "SEI", "BMES": "SEM", "BILOU": "ULI"}.get(scheme, "BII")
    labels = ["O"] * length
    for kind, start, end in layout:
        for at in range(start, end):
            prefix = "B" if at == start else last if at == end - 1 else middle
            if end - start == 1:
                prefix = single
            if scheme == "IOB1" and at == start:
                touching = any(k == kind and e == start for k, _, e in layout)
                prefix = "B" if touching else "I"
            labels[at] = f"{prefix}-{kind}" if kind else prefix
    return tuple(labels)


def is_legal(rules, ids):
    pairs = pairwise(ids)
    return bool(
        rules.start[ids[0]] and rules.end[ids[-1]] and all(rules.transition[a, b] for a, b in pairs)
    )


@pytest.mark.parametrize("scheme", LABELS)
def test_legal_labelings_are_those_that_say_some_spans(scheme):
    labels = LABELS[scheme]
    rules = legal_transitions(labels, scheme)
    assert rules.start.shape == rules.end.shape == (len(labels),)
    assert rules.transition.shape == (len(labels), len(labels))
    types = sorted({label[2:] for label in labels if label != "O"})
    for length in range(1, 5):
        encodings = {written(layout, length, scheme) for layout in layouts(length, types)}
        for ids in product(range(len(labels)), repeat=length):
            labeling = tuple(labels[i] for i in ids)
            assert is_legal(rules, ids) == (labeling in encodings), labeling
            assert is_legal(rules, ids) == (not faults(labeling, scheme)), labeling


def test_every_labeling_of_plain_labels_is_legal():
    rules = legal_transitions(["NN", "B", "I-X"], "plain")
    assert rules.start.all() and rules.transition.all() and rules.end.all()
    assert rules.transition.shape == (3, 3)


def test_labels_that_the_scheme_does_not_have_are_legal_nowhere():
    rules = legal_transitions(["O", "B-A", "I-A", "S-A"], "BIO")
    assert not rules.start[3] and not rules.end[3]
    assert not rules.transition[3].any() and not rules.transition[:, 3].any()
    assert rules.start.tolist() == [True, True, False, False]


def test_another_delimiter():
    assert legal_transitions(["B_A", "I_A"], "BIO", "_").transition.tolist() == [[1, 1], [1, 1]]
    assert list(span_masks(["O", "B_A"], "BIO", "_")) == ["A"]


@pytest.mark.parametrize(
    "labels",
    [
        ["O", "B-A", "I-A", "B-B", "I-B"],
        ["O", "B-A", "E-A", "S-A", "I-B"],
        ["B", "M", "E", "S"],
        ["U-A", "L-A", "i-A", "NN", "O"],
    ],
)
def test_masks_hold_exactly_where_a_labeling_has_the_span(labels):
    # For every labeling, ill-formed ones too, every type and every place.
    masks = span_masks(labels, "BIO")
    length = 4
    places = [(s, e) for s in range(length) for e in range(s + 1, length + 1)]
    for ids in product(range(len(labels)), repeat=length):
        read = spans([labels[i] for i in ids])
        assert {span.label for span in read} <= set(masks)
        for kind, (start, end) in product(masks, places):
            mask = masks[kind]
            a, z = ids[start], ids[end - 1]
            begins = mask.begin[ids[start - 1], a] if start else mask.begin_first[a]
            ends = mask.end[z, ids[end]] if end < length else mask.end_last[z]
            on = all(mask.inside[ids[t - 1], ids[t]] for t in range(start + 1, end))
            assert bool(begins and on and ends) == ((kind, start, end) in read)


def test_masks_are_boolean_arrays_by_type():
    masks = span_masks(["O", "B-B", "B-A"], "IOB2")
    assert list(masks) == ["B", "A"] and len(masks) == 2
    assert "A" in masks and "C" not in masks
    for array, shape in zip(masks["A"], [(3, 3), (3,), (3, 3), (3, 3), (3,)], strict=True):
        assert array.dtype == np.bool_ and array.shape == shape
    labels = ["B-A", "I-A", "B-B", "I-B"]
    inside = {kind: mask.inside for kind, mask in span_masks(labels, "BIO").items()}
    assert np.argwhere(inside["A"]).tolist() == [[0, 1], [1, 1]]
    assert np.argwhere(inside["B"]).tolist() == [[2, 3], [3, 3]]
    assert len(span_masks(["B-A", "NN"], "plain")) == 0
    with pytest.raises(InputError):
        span_masks(["O"], "BIEOS")
