"""Starting from a model there is, and tables that stay as they are."""

import pytest
import torch

from ncrf import Tagger
from ncrf.errors import InputError
from ncrf.model.folder import read_tensors
from tests.conftest import small_keys


@pytest.fixture
def corpus(tmp_path):
    """A small corpus with words, a character and a label that the sample data has not."""
    path = tmp_path / "more.bioes"
    path.write_text("Zaž S-GPE\nleft O\n\nAnna S-PER\nleft O\n\n" * 5)
    return path


def test_weights_and_alphabets_go_on(trained, corpus, tmp_path):
    keys = {"train_dir": str(corpus), "dev_dir": None, "iteration": 1, "learning_rate": 1e-9}
    tagger = Tagger.train(small_keys(tmp_path / "model", init_from=str(trained), **keys))
    before = Tagger.load(trained)
    old, new = before.vocabulary, tagger.vocabulary
    assert new.words.strings[: len(old.words)] == old.words.strings
    assert "Zaž" in new.words and "S-GPE" in new.labels and "S-GPE" not in old.labels
    assert new.words.counts[new.words.id("left")] == old.words.counts[old.words.id("left")] + 10
    moved = read_tensors(tmp_path / "model" / "model.safetensors")
    for name, values in read_tensors(trained / "model.safetensors").items():
        block = moved[name][tuple(slice(0, size) for size in values.shape)]
        torch.testing.assert_close(block, values, atol=1e-5, rtol=1e-5)
    sentences = [["Anna", "met", "Bo", "in", "Oslo", "."]]
    assert tagger.predict(sentences)[0].labels == before.predict(sentences)[0].labels


def test_other_layers_or_sizes_are_refused(trained, corpus, tmp_path):
    keys = {"train_dir": str(corpus), "dev_dir": None, "init_from": str(trained)}
    for other in ({"hidden_dim": 30}, {"word_seq_feature": "CNN"}, {"tag_scheme": "BIO"}):
        with pytest.raises(InputError, match="init_from"):
            Tagger.train(small_keys(tmp_path / "model", **keys, **other))
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("frozen", ["word", "char"])
def test_frozen_tables_stay(corpus, tmp_path, frozen):
    keys = {"train_dir": str(corpus), "dev_dir": None, "learning_rate": 0.1}
    tables = {
        "word": "representation.word_embedding.weight",
        "char": "representation.char_embedding.weight",
    }
    weights = []
    for epochs in (1, 3):
        folder = tmp_path / str(epochs)
        Tagger.train(small_keys(folder, **{**keys, "freeze": frozen, "iteration": epochs}))
        weights.append(read_tensors(folder / "model.safetensors"))
    for name, table in tables.items():
        assert torch.equal(weights[0][table], weights[1][table]) == (name == frozen), name


def test_freezing_what_is_not_there(corpus, tmp_path):
    with pytest.raises(InputError, match=r"freeze=POS: no such table \(of: word, char\)"):
        Tagger.train(small_keys(tmp_path / "model", train_dir=str(corpus), freeze="POS"))
