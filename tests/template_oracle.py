"""Feature templates as CRF++ defines them, string by string, and the CRF by enumeration.

Nothing here uses the project's own templates: text is put together and labelings are listed.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter

import numpy as np

from ncrf.data.attributes import AttributeVocabulary
from ncrf.data.dataset import InternedColumn, StringTable, offsets_of
from ncrf.data.feature_index import FeatureIndex
from ncrf.data.templates import parse_templates

_MACRO = re.compile(r"%([xv])\[(-?\d+),(\d+)\]")


def attribute(line, rows, t):
    """The text and the value of a template line at word t of a sentence (a list of rows)."""
    value = 1.0

    def cell(match):
        nonlocal value
        place = t + int(match[2])
        if place < 0:
            return f"_B{place}"
        if place >= len(rows):
            return f"_B+{place - len(rows) + 1}"
        found = rows[place][int(match[3])]
        if match[1] == "v" and ":" in found:
            found, number = found.split(":")
            value *= float(number)
        return found

    return _MACRO.sub(cell, line), value


def features(lines, rows, labels):
    """How often each feature (attribute, its one or two labels) occurs in a labelled sentence."""
    found = Counter()
    for line, t in itertools.product(lines, range(len(rows))):
        if line[0] == "U":
            text, value = attribute(line, rows, t)
            found[text, (labels[t],)] += value
        elif t:
            text, value = attribute(line, rows, t)
            found[text, (labels[t - 1], labels[t])] += value
    return found


def observed(lines, corpus):
    """The features of a corpus of (rows, labels)."""
    found = Counter()
    for rows, labels in corpus:
        found.update(features(lines, rows, labels))
    return found


def log_likelihood(score, corpus, labels):
    """Log-probability of a corpus and its gradient, where ``score(rows, labeling)`` gives
    the score of a labeling and a dictionary of its features."""
    total, gradient = 0.0, Counter()
    for rows, gold in corpus:
        every = [score(rows, y) for y in itertools.product(labels, repeat=len(rows))]
        top = max(s for s, _ in every)
        log_z = top + math.log(sum(math.exp(s - top) for s, _ in every))
        gold_score, seen = score(rows, tuple(gold))
        total += gold_score - log_z
        for name, count in seen.items():
            gradient[name] += count
        for s, counts in every:
            for name, count in counts.items():
                gradient[name] -= math.exp(s - log_z) * count
    return total, gradient


def columns_of(corpus):
    """The rows of a corpus as columns, and the offsets of its sentences."""
    rows = [row for sentence, _ in corpus for row in sentence]
    width = len(rows[0]) if rows else 2
    columns = {}
    for place in range(width):
        table = StringTable()
        ids = np.array([table[row[place]] for row in rows], np.int64)
        columns[f"c{place}"] = InternedColumn(ids, table.strings())
    return columns, offsets_of(np.array([len(sentence) for sentence, _ in corpus], np.int64))


def encoded(lines, corpus, labels, *, cutoff=1, **options):
    """Vocabulary, attributes, label ids and features of a corpus by the project's own code."""
    templates = parse_templates(enumerate(lines, 1))
    columns, offsets = columns_of(corpus)
    vocabulary, attributes = AttributeVocabulary.build(templates, columns, offsets, cutoff)
    ids = np.array([labels.index(y) for _, gold in corpus for y in gold], np.int64)
    sizes = vocabulary.num_unigram, vocabulary.num_bigram
    index = FeatureIndex.build(
        attributes, ids, len(labels), sizes, transitions=templates.transitions, **options
    )
    return vocabulary, attributes, ids, index


def names(vocabulary, index, labels):
    """Each weight's feature as the functions above name it."""
    unigram, bigram = vocabulary.unigram_strings(), vocabulary.bigram_strings()
    found = []
    parts = index.parts_of(np.arange(index.num_features))
    for k, (a, before, label) in enumerate(zip(*(p.tolist() for p in parts), strict=True)):
        if before < 0:
            found.append((unigram[a], (labels[label],)))
        else:
            text = "B" if a < 0 else bigram[a]
            assert (a < 0) == (k < index.parts[1].stop)
            found.append((text, (labels[before], labels[label])))
    return found
