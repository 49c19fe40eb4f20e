"""Labels written by context are those of the conversion of whole labelings."""

import itertools

import numpy as np
import pytest

from ncrf.data.label_tables import legal_transitions
from ncrf.data.schemes import convert
from ncrf.decode import written_labels
from ncrf.decode.written_labels import WrittenLabels

ALPHABETS = {
    "IOB2": ("B-A", "O", "I-A", "B-B", "I-B"),
    "BIOES": ("S-A", "B-A", "E-A", "I-A", "O", "S-B"),
    "BMES": ("B", "M", "E", "S"),
}


def legal_paths(labels, scheme, length):
    legal = legal_transitions(labels, scheme)
    for path in itertools.product(range(len(labels)), repeat=length):
        pairs = all(legal.transition[a, b] for a, b in itertools.pairwise(path))
        if pairs and legal.start[path[0]] and legal.end[path[-1]]:
            yield list(path)


@pytest.mark.parametrize("table", [True, False])
@pytest.mark.parametrize("output", ["IOB1", "IOB2", "BIOES", "BILOU", "BMES"])
@pytest.mark.parametrize("target", list(ALPHABETS))
def test_every_legal_labeling_of_up_to_four_words(target, output, table, monkeypatch):
    if not table:
        monkeypatch.setattr(written_labels, "_MOST_CONTEXTS", 0)
    labels = ALPHABETS[target]
    written = WrittenLabels(labels, target, output, "-")
    paths = [path for length in (1, 2, 3, 4) for path in legal_paths(labels, target, length)]
    padded = np.array([[path + [0] * (4 - len(path))] for path in paths])
    lengths = [len(path) for path in paths]
    found = written.write(padded, lengths)
    assert len(paths) > 10
    for path, (labeling,) in zip(paths, found, strict=True):
        assert labeling == convert([labels[i] for i in path], target, output, "-")
