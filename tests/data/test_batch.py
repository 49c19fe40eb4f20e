"""Batches: slices of the flat arrays, padded; every sentence once an epoch."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ncrf.data.alphabet import UNKNOWN
from ncrf.data.batch import (
    UnknownReplacement,
    make_batch,
    pieces,
    split_by_length,
    training_batches,
)
from ncrf.data.dataset import intern_corpus
from ncrf.data.normalization import Normalization
from ncrf.data.sentence import Sentence
from ncrf.data.vocabulary import LabelScheme, Vocabulary

SENTENCES = [
    Sentence(["Anna", "met", "Bo"], ["S-PER", "O", "S-PER"], {"POS": ["N", "V", "N"]}),
    Sentence(["Bo"], ["S-PER"], {"POS": ["N"]}),
    Sentence(["in", "1996", "Bo", "left"], ["O", "O", "S-PER", "O"], {"POS": list("PDNV")}),
]


@pytest.fixture
def corpus():
    return intern_corpus(SENTENCES, "made up")


@pytest.fixture
def vocabulary(corpus):
    return Vocabulary.build(corpus, LabelScheme("BIOES", "BIOES"), normalization=Normalization())


def test_batch_holds_the_sentences(corpus, vocabulary):
    batch = make_batch(vocabulary.encode(corpus), np.array([2, 0]))
    words = batch.words[batch.word_index]
    assert batch.mask.tolist() == [[True] * 4, [True] * 3 + [False]]
    assert batch.lengths.tolist() == [4, 3]
    assert batch.index.tolist() == [2, 0]
    for row, sentence in enumerate([SENTENCES[2], SENTENCES[0]]):
        length = len(sentence.words)
        known = [vocabulary.normalization.key(word) for word in sentence.words]
        assert words[row, :length].tolist() == vocabulary.words.ids(known).tolist()
        assert (
            batch.labels[row, :length].tolist() == vocabulary.labels.ids(sentence.labels).tolist()
        )
        tags = vocabulary.features["POS"].ids(sentence.features["POS"])
        assert batch.features[0, row, :length].tolist() == tags.tolist()
    assert batch.features[0, 1, 3] == 0 and batch.labels[1, 3] == 0


def test_distinct_words_stand_once_with_their_characters(corpus, vocabulary):
    batch = make_batch(vocabulary.encode(corpus), np.array([0, 1, 2]))
    assert len(batch.words) == len({word for s in SENTENCES for word in s.words})
    year = batch.word_index[2, 1]
    expected = vocabulary.characters.ids("0000").tolist()
    assert batch.characters[year, : batch.character_lengths[year]].tolist() == expected
    assert batch.characters[year, batch.character_lengths[year] :].eq(0).all()


def test_long_words_are_cut_for_the_character_layer(corpus, vocabulary):
    batch = make_batch(vocabulary.encode(corpus), np.array([0]), max_word_length=2)
    assert batch.characters.shape[1] == 2 and batch.character_lengths.max() == 2


def test_unseen_words_are_unknown_or_get_the_rows_of_the_file(corpus, vocabulary):
    class File:
        def rows(self, candidates):
            found = np.array(["Oslo" in forms for forms in candidates])
            rows = np.where(found[:, None], [[1.0, 2.0]], 0.0).astype(np.float32)
            return rows, found

    text = intern_corpus([Sentence(["Oslo", "Bo", "Quito"], None, {"POS": list("NNN")})], "raw")
    without = make_batch(vocabulary.encode(text), np.array([0]))
    assert without.words[without.word_index[0, [0, 2]]].tolist() == [UNKNOWN, UNKNOWN]
    assert without.labels is None and len(without.new_rows) == 0
    batch = make_batch(vocabulary.encode(text, File()), np.array([0]))
    assert batch.new_rows.tolist() == [batch.word_index[0, 0]]
    assert batch.new_vectors.tolist() == [[1.0, 2.0]]
    assert batch.words[batch.word_index[0]].tolist() == [
        UNKNOWN,
        vocabulary.words.id("Bo"),
        UNKNOWN,
    ]


def test_labels_unseen_in_training_get_ids_beyond_the_model(vocabulary):
    text = intern_corpus([Sentence(["Bo", "left"], ["S-LOC", "O"], {"POS": ["N", "V"]})], "dev")
    dataset = vocabulary.encode(text)
    assert [dataset.label_strings[i] for i in dataset.labels] == ["S-LOC", "O"]
    assert dataset.labels[0] >= len(vocabulary.labels)
    assert "S-LOC" not in vocabulary.labels


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_strings_seen_once_are_replaced(corpus, vocabulary, probability):
    replacement = UnknownReplacement(
        probability,
        vocabulary.words.singletons,
        vocabulary.characters.singletons,
        (vocabulary.features["POS"].singletons,),
    )
    rng = np.random.default_rng(0)
    dataset = vocabulary.encode(corpus)
    batch = make_batch(dataset, np.arange(3), replacement=replacement, rng=rng)
    words = batch.words[batch.word_index][batch.mask].tolist()
    replaced = [word for s in SENTENCES for word in s.words if word != "Bo"]
    assert words.count(UNKNOWN) == (len(replaced) if probability else 0)
    tags = batch.features[0][batch.mask].tolist()
    assert tags.count(UNKNOWN) == (2 if probability else 0)  # P and D stand there once
    has_unknown_character = bool(batch.characters.eq(UNKNOWN).any())
    assert has_unknown_character == bool(probability)


def test_empty_sentences_pad_to_nothing(vocabulary):
    text = intern_corpus([Sentence([], None, {"POS": []}), SENTENCES[1]], "raw", ("POS",))
    batch = make_batch(vocabulary.encode(text), np.array([0, 1]))
    assert batch.mask.tolist() == [[False], [True]]


@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=400),
    size=st.integers(1, 12),
    bucket=st.booleans(),
)
def test_an_epoch_takes_every_sentence_once(lengths, size, bucket):
    rng = np.random.default_rng(0)
    batches = training_batches(np.array(lengths), size, bucket, rng)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert max(map(len, batches)) <= size


def test_buckets_hold_like_lengths_and_change_every_epoch():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 60, 3000)
    padding = {}
    for bucket in (True, False):
        batches = training_batches(lengths, 10, bucket, rng)
        padded = sum(lengths[b].max() * len(b) for b in batches)
        padding[bucket] = padded / lengths.sum() - 1
    assert padding[True] < 0.1 < padding[False]
    first, second = (training_batches(lengths, 10, True, rng) for _ in range(2))
    assert {tuple(sorted(b)) for b in first}.isdisjoint({tuple(sorted(b)) for b in second})
    order = [lengths[b].mean() for b in first]
    assert abs(np.corrcoef(order, range(len(order)))[0, 1]) < 0.2  # batches are shuffled


@given(lengths=st.lists(st.integers(0, 300), min_size=1, max_size=60), budget=st.integers(1, 2000))
def test_pieces_stay_within_their_padded_size(lengths, budget):
    lengths = np.array(lengths)
    parts = list(pieces(np.arange(len(lengths)), lengths, budget))
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(lengths)))
    for part in parts:
        assert len(part) == 1 or len(part) * lengths[part].max() <= budget


@given(lengths=st.lists(st.integers(0, 300), min_size=1, max_size=60), spared=st.integers(1, 900))
def test_a_batch_is_split_only_where_that_spares_enough_padding(lengths, spared):
    lengths = np.array(lengths)
    parts = split_by_length(np.arange(len(lengths)), lengths, spared)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(lengths)))
    padded = sum(len(part) * lengths[part].max() for part in parts)
    assert padded + (len(parts) - 1) * spared <= len(lengths) * lengths.max()
    for part in parts:  # no single cut would spare as much
        falling = np.sort(lengths[part])[::-1]
        for cut in range(1, len(falling)):
            split = cut * falling[0] + (len(falling) - cut) * falling[cut]
            assert len(falling) * falling[0] - split < spared


def test_tensors_are_what_torch_expects(corpus, vocabulary):
    batch = make_batch(vocabulary.encode(corpus), np.arange(3))
    for name in ("words", "characters", "word_index", "features", "labels", "lengths"):
        assert getattr(batch, name).dtype == torch.int64, name
    assert batch.mask.dtype == torch.bool
