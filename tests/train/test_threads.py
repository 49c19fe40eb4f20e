"""A step that threads share: the same numbers, whoever computes them."""

import pytest
import torch

from ncrf import Tagger
from ncrf.model import convolution, recurrent
from ncrf.model.folder import read_tensors
from tests.conftest import small_keys

BATCHES = {"batch_size": 16, "iteration": 2}


@pytest.fixture(autouse=True)
def small_shares(monkeypatch):
    monkeypatch.setattr(recurrent, "_FEWEST", 4)
    monkeypatch.setattr(convolution, "_MANY", 64)


def model_bytes(folder):
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"word_seq_feature": "GRU", "lstm_layer": 2},
        {"char_seq_feature": "ALL", "use_crf": False},
        {"freeze": "word,char"},
        {"ave_batch_loss": True, "max_batch_tokens": 64},
    ],
    ids=str,
)
def test_two_threads_give_the_bytes_of_one(tmp_path, keys):
    for threads in (1, 2):
        Tagger.train(small_keys(tmp_path / str(threads), threads=threads, **BATCHES, **keys))
    assert model_bytes(tmp_path / "1") == model_bytes(tmp_path / "2")


def test_a_convolution_over_words_has_the_same_bytes_for_the_same_threads(tmp_path):
    keys = {"threads": 2, "word_seq_feature": "CNN", "learning_rate": 0.001}
    for name in "ab":
        Tagger.train(small_keys(tmp_path / name, **BATCHES, **keys))
    assert model_bytes(tmp_path / "a") == model_bytes(tmp_path / "b")


@pytest.mark.parametrize("keys", [{}, {"bilstm": False}], ids=str)
def test_shared_rows_make_the_step_of_the_whole(tmp_path, keys):
    """More threads than directions share the rows: the sums differ by rounding only."""
    for threads in (1, 5):
        chosen = small_keys(tmp_path / str(threads), threads=threads, **BATCHES, **keys)
        Tagger.train({**chosen, "batch_size": 1000, "iteration": 1})
    whole, shared = (read_tensors(tmp_path / n / "model.safetensors") for n in "15")
    for name, values in whole.items():
        torch.testing.assert_close(shared[name], values, atol=1e-5, rtol=1e-4)


def test_an_error_names_the_sentence(tmp_path):
    corpus = tmp_path / "train.bio"
    corpus.write_text(
        "Anna B-PER\nleft O\n\n" * 20 + "Bo B-PER|I-LOC\nBo I-LOC\n\n" + "to O\n\n" * 9
    )
    keys = {
        "train_dir": str(corpus),
        "dev_dir": None,
        "threads": 2,
        "constraints": "all",
        "partial_labels": "none",
        "input_scheme": "IOB2",
        **BATCHES,
    }
    with pytest.raises(Exception, match=rf"{corpus}:6[0-9]"):
        Tagger.train(small_keys(tmp_path / "model", **keys))
