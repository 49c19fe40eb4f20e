"""What several tests share: a small trained model on the sample data."""

import signal
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from hypothesis import settings

settings.register_profile("ncrf", derandomize=True, deadline=None)
settings.load_profile("ncrf")

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "sample_data"


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Small tensors are computed fastest, and always alike, by one thread."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def interrupts():
    """Ctrl-C interrupts, also where a shell started the tests in the background without it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def small_keys(folder: Path, **keys):
    """Keys of a quick training on the sample data; ``keys`` go before them."""
    return {
        "train_dir": str(SAMPLE / "dev.bioes"),
        "dev_dir": str(SAMPLE / "test.bioes"),
        "model_dir": str(folder),
        "iteration": 2,
        "threads": 1,
        "hidden_dim": 20,
        "char_hidden_dim": 10,
        "char_emb_dim": 8,
        "word_emb_dim": 16,
        **keys,
    }


class Stopped(Exception):
    """What ends a training in ``stopping_at``."""


@contextmanager
def stopping_at(epoch: int, step: int):
    """Within it every training is stopped before this step of this epoch (counted from 0)."""
    from ncrf.train.minibatch import Trainer

    whole = Trainer._step

    def stopping(trainer, batches, number, rate):
        if (trainer.progress.epoch, number) == (epoch, step):
            raise Stopped
        return whole(trainer, batches, number, rate)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(Trainer, "_step", stopping)
        yield


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The model folder of a quick training."""
    from ncrf import Tagger

    folder = tmp_path_factory.mktemp("trained") / "model"
    keys = {"iteration": 5, "optimizer": "Adam", "learning_rate": 0.01, "dropout": 0.2}
    Tagger.train(small_keys(folder, train_dir=str(SAMPLE / "train.bioes"), **keys))
    return folder


@pytest.fixture(scope="session")
def tagger(trained):
    """The Tagger of that training, loaded from its folder."""
    from ncrf import Tagger

    return Tagger.load(trained)
