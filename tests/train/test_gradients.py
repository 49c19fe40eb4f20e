"""A step in parts: the same gradient, and the same bytes for the same number of threads."""

import pytest
import torch

from ncrf import Tagger
from ncrf.model.dropout import Dropout, random_numbers_from
from ncrf.model.folder import read_tensors
from ncrf.train import feed
from tests.conftest import small_keys

BATCHES = {"batch_size": 16, "iteration": 2}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(feed, "_FEWEST", 4)


def weights(folder):
    return read_tensors(folder / "model.safetensors")


def test_parts_make_the_step_of_the_whole(tmp_path):
    """One step on the whole corpus: the parameters move alike."""
    keys = {"batch_size": 1000, "iteration": 1, "dropout": 0, "unk_singleton": 0}
    for threads in (1, 2, 3):
        Tagger.train(small_keys(tmp_path / str(threads), threads=threads, **keys))
    whole = weights(tmp_path / "1")
    for threads in ("2", "3"):
        parts = weights(tmp_path / threads)
        assert any(not torch.equal(parts[name], whole[name]) for name in whole)
        for name, values in whole.items():
            torch.testing.assert_close(parts[name], values, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("keys", [{}, {"word_seq_feature": "CNN"}, {"char_seq_feature": "GRU"}])
def test_the_same_threads_give_the_same_bytes(tmp_path, keys):
    for name in "ab":
        Tagger.train(small_keys(tmp_path / name, threads=2, **BATCHES, **keys))
    first, second = ((tmp_path / n / "model.safetensors").read_bytes() for n in "ab")
    assert first == second


def test_an_error_in_a_thread_names_the_sentence(tmp_path):
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


def test_random_numbers_of_a_thread_are_its_own():
    values = torch.ones(100, 7)
    torch.manual_seed(0)
    plain = Dropout(0.5)(values)
    state = torch.get_rng_state()
    found = []
    for _ in range(2):
        with random_numbers_from(torch.Generator().manual_seed(9)):
            found.append(Dropout(0.5)(values))
    assert torch.equal(*found) and not torch.equal(found[0], plain)
    assert torch.equal(torch.get_rng_state(), state)
