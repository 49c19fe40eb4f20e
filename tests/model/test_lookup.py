"""Emissions of looked-up words are those of the labeler, for every layer and any batch."""

import numpy as np
import pytest
import torch

from ncrf import load_config
from ncrf.data.batch import make_batch, make_row_batch, make_types
from ncrf.data.columns import Sentence
from ncrf.data.corpora import settle_scheme
from ncrf.data.dataset import intern_corpus
from ncrf.data.normalization import Normalization
from ncrf.data.vocabulary import Vocabulary
from ncrf.model.labeler import build_labeler
from ncrf.model.lookup import Lookup

LENGTHS = (3, 1, 7, 4, 7, 2)


class TwoNew:
    """Vectors for two words that training did not see."""

    def rows(self, candidates):
        found = np.array([forms[0] in ("new0", "new1") for forms in candidates], np.bool_)
        rows = np.random.default_rng(0).normal(size=(len(found), 12)).astype(np.float32)
        return np.where(found[:, None], rows, 0), found


def corpus_of(words, features):
    rng = np.random.default_rng(5)
    sentences = []
    for length in LENGTHS:
        chosen = [str(word) for word in rng.choice(words, length)]
        columns = {name: [f"v{i}" for i in rng.integers(0, 4, length)] for name in features}
        sentences.append(Sentence(chosen, ["B-X", *["O"] * (length - 1)], columns, "file", 1))
    return intern_corpus(sentences, "file", features)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"word_seq_feature": "GRU"},
        {"word_seq_feature": "CNN", "cnn_layer": 2},
        {"bilstm": False},
        {"word_seq_feature": "GRU", "bilstm": False, "lstm_layer": 2},
        {"lstm_layer": 2},
        {"use_word_seq": False},
        {"use_char": False},
        {"use_word_emb": False, "use_char": False},
        {"char_seq_feature": "LSTM"},
        {"sentence_classification": True},
        {"sentence_classification": True, "word_seq_feature": "CNN"},
    ],
    ids=str,
)
@pytest.mark.parametrize("features", [(), ("POS", "Cap")])
def test_emissions_are_those_of_the_labeler(keys, features):
    if keys.get("use_word_emb") is False and not features:
        pytest.skip("a network without input")
    sizes = {"word_emb_dim": 12, "hidden_dim": 10, "char_hidden_dim": 8, "char_emb_dim": 5}
    lines = [f"[{name}] emb_size=3" for name in features]
    config = load_config(
        {"model_dir": "x", "train_dir": "x", **sizes, "feature": lines, **keys}, check_files=False
    )
    train = corpus_of(["Anna", "met", "Bo", "in", "Oslo"], features)
    scheme = settle_scheme(config, train)
    vocabulary = Vocabulary.build(train, scheme, normalization=Normalization())
    torch.manual_seed(0)
    labeler = build_labeler(config, vocabulary)
    for parameter in labeler.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    labeler.eval()
    corpus = corpus_of(["Anna", "new0", "new1", "other", "Oslo"], features)
    dataset = vocabulary.encode(corpus, TwoNew())
    lookup = Lookup(labeler)
    with torch.inference_mode():
        types = np.arange(len(dataset.type_table.words))
        table = lookup.rows(make_types(dataset.type_table, types))
        assert table.shape == (len(types), lookup.width)
        order = np.argsort([-length for length in LENGTHS], kind="stable")
        batch = make_row_batch(dataset.offsets, order, dataset.types, dataset.features)
        ours = lookup.emissions(table, batch)
        plain = labeler(make_batch(dataset, order))
        mask = lookup.label_mask(batch)
    assert torch.equal(mask, labeler.label_mask(make_batch(dataset, order)))
    assert plain[mask].std() > 0.01
    torch.testing.assert_close(ours[mask], plain[mask], atol=5e-6, rtol=1e-5)
