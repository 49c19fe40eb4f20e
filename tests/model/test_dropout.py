"""The mask of dropout: as often zero as was said, unbiased, and no two places alike."""

import pytest
import torch

from ncrf import load_config
from ncrf.data.corpora import load_corpus, settle_scheme
from ncrf.data.normalization import Normalization
from ncrf.data.vocabulary import Vocabulary
from ncrf.model.dropout import Dropout, WordDropout
from ncrf.model.labeler import build_labeler
from tests.conftest import small_keys


def dropped(probability, *shape):
    torch.manual_seed(4)
    return Dropout(probability)(torch.ones(*shape))


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5, 0.9])
def test_the_share_and_the_mean(probability):
    values = dropped(probability, 1000, 401)
    error = 5 * (probability * (1 - probability) / values.numel()) ** 0.5
    assert (values == 0).float().mean().item() == pytest.approx(probability, abs=error)
    assert values.mean().item() == pytest.approx(1, abs=error / (1 - probability))
    kept = values[values > 0].unique()
    assert len(kept) == 1
    assert kept.item() == pytest.approx(1 / (1 - probability), abs=1e-3)


def test_neighbouring_numbers_are_independent():
    """Four masks come from one random number: none tells of another."""
    lanes = (dropped(0.5, 100_000, 4) == 0).float()
    correlation = torch.corrcoef(lanes.t()) - torch.eye(4)
    assert correlation.abs().max() < 5 / 100_000**0.5


@pytest.mark.parametrize("shape", [(1,), (3, 7), (0, 5), (2, 3, 5)])
def test_any_shape(shape):
    assert dropped(0.5, *shape).shape == shape


def test_the_gradient_goes_where_the_numbers_went():
    values = torch.ones(50, 3, requires_grad=True)
    output = Dropout(0.5)(values)
    output.sum().backward()
    assert torch.equal(values.grad, output.detach())


@pytest.mark.parametrize("probability", [0.0, 0.5])
def test_in_evaluation_nothing_is_dropped(probability):
    values = torch.randn(4, 5)
    assert Dropout(probability).eval()(values) is values
    assert Dropout(0.0)(values) is values


def test_everything_may_be_dropped():
    assert dropped(1.0, 4, 4).abs().sum() == 0


@pytest.mark.parametrize("probability", [0.3, 0.5])
def test_shared_along_the_sentence(probability):
    torch.manual_seed(4)
    values = Dropout(probability, shared=1)(torch.ones(300, 7, 41))
    assert torch.equal(values, values[:, :1].expand_as(values))
    rows = (values[:, 0] == 0).float()
    error = 5 * (probability * (1 - probability) / rows.numel()) ** 0.5
    assert rows.mean().item() == pytest.approx(probability, abs=error)
    assert rows.std(dim=0).min() > 0  # sentences differ


def test_a_vector_for_a_row_has_nothing_to_share():
    torch.manual_seed(4)
    assert len(Dropout(0.5, shared=1)(torch.ones(50, 40)).unique(dim=1).t()) > 1


def test_word_dropout_takes_whole_words_and_scales_none():
    torch.manual_seed(4)
    values = WordDropout(0.2)(torch.ones(500, 9, 11))
    assert set(values.unique().tolist()) == {0.0, 1.0}
    words = values.mean(2)
    assert torch.equal(words, words.round())
    error = 5 * (0.2 * 0.8 / words.numel()) ** 0.5
    assert 1 - words.mean().item() == pytest.approx(0.2, abs=error)
    assert WordDropout(0.2).eval()(values) is values


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "CNN"])
def test_the_keys_reach_their_places(tmp_path, layer):
    keys = {"dropout": 0.4, "dropout_char": 0.1, "dropout_input": 0.2, "word_dropout": 0.05}
    keys |= {"locked_dropout": True, "word_seq_feature": layer}
    labeler = build_labeler(*small_network(tmp_path, **keys))
    given, word_layer = labeler.representation, labeler.word_layer
    assert given.char_dropout.probability == 0.1 and given.char_dropout.shared is None
    assert given.dropout.probability == 0.2 and given.dropout.shared == 1
    assert given.word_dropout.probability == 0.05
    assert word_layer.dropout.probability == 0.4
    assert word_layer.dropout.shared == 1
    labeler = build_labeler(*small_network(tmp_path, **{**keys, "dropout_output": 0.0}))
    assert labeler.word_layer.dropout.probability == 0.0
    labeler = build_labeler(*small_network(tmp_path, dropout=0.4))
    given = labeler.representation
    assert given.char_dropout.probability == given.dropout.probability == 0.4
    assert given.word_dropout.probability == 0 and given.dropout.shared is None


def small_network(folder, **keys):
    """A config and the vocabulary of the sample corpus, for a network of few numbers."""
    config = load_config(small_keys(folder / "model", **keys))
    corpus = load_corpus(config, config.files.train_dir)
    scheme = settle_scheme(config, corpus)
    vocabulary = Vocabulary.build(
        corpus, scheme, normalization=Normalization(), partial_labels="none"
    )
    return config, vocabulary
