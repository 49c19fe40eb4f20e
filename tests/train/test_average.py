"""The average of the weights: that of a plain loop, in what is scored, saved and resumed."""

import json

import pytest
import torch

from ncrf import Tagger
from ncrf.model.folder import read_tensors
from ncrf.train import average
from ncrf.train.average import WeightAverage
from ncrf.train.minibatch import Trainer
from ncrf.train.optimizers import Updates
from tests.conftest import SAMPLE, small_keys, stopping_at
from tests.train.test_optimizers import Tiny, rows_of, training_keys

STEPS = 25
WAYS = {
    "rows": {"optimizer": "SGD", "momentum": 0, "l2": 0},
    "dense": {"optimizer": "SGD", "momentum": 0.5},
    "adam": {"optimizer": "Adam", "l2": 0.1},
}


def moved(averages, weights, decay):
    return {
        name: values + (1 - decay) * (weights[name] - values) for name, values in averages.items()
    }


def doubles(model):
    return {name: values.double().clone() for name, values in model.state_dict().items()}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ema", [0.5, 0.999])
def test_the_average_is_that_of_a_plain_loop(way, ema):
    model = Tiny(way == "rows")
    updates = Updates(model, training_keys(ema=ema, **WAYS[way]))
    expected = doubles(model)
    for step in range(STEPS):
        updates.zero_grad()
        model.loss(rows_of(step % 6)).backward()
        updates.step(0.05)
        expected = moved(expected, doubles(model), min(ema, (1 + step) / (10 + step)))
    updates.settle()
    raw = doubles(model)
    with updates.averaged():
        for name, values in doubles(model).items():
            torch.testing.assert_close(values, expected[name], atol=1e-6, rtol=1e-5)
        assert not torch.allclose(doubles(model)["projection.weight"], raw["projection.weight"])
    assert all(torch.equal(values, raw[name]) for name, values in doubles(model).items())


def test_large_tensors_are_averaged_at_every_tenth_step(monkeypatch):
    monkeypatch.setattr(average, "_LARGE", 30)  # the table has 36 numbers, the projection 6
    model = Tiny(False)
    updates = Updates(model, training_keys(ema=0.999, momentum=0.5))
    expected, decay = doubles(model)["table.weight"], 1.0
    for step in range(STEPS):
        updates.zero_grad()
        model.loss(rows_of(step % 6)).backward()
        updates.step(0.05)
        decay *= (1 + step) / (10 + step)
        if step in (9, 19, STEPS - 1):
            expected = decay * expected + (1 - decay) * doubles(model)["table.weight"]
            decay = 1.0
    updates.settle()
    with updates.averaged():
        torch.testing.assert_close(doubles(model)["table.weight"], expected, atol=1e-6, rtol=1e-5)


def test_statistics_of_batch_normalization_are_averaged_and_constants_are_not():
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(3))
    model.register_buffer("table", torch.tensor([0.0, -torch.inf]))
    averages = WeightAverage(model, 0.9, [])
    names = {name.removeprefix("average.") for name in averages.tensors() if "." in name}
    assert names == {"0.weight", "0.bias", "0.running_mean", "0.running_var"}


def test_a_gradient_that_is_not_finite_is_no_step():
    model = Tiny(True)
    updates = Updates(model, training_keys(ema=0.9))
    before = {name: values.clone() for name, values in updates.tensors().items()}
    (model.loss(rows_of(0)) * float("inf")).backward()
    updates.step(0.1)
    assert all(torch.equal(values, before[name]) for name, values in updates.tensors().items())


def test_the_average_is_scored_and_saved_and_the_weights_go_on(tmp_path, monkeypatch):
    """The losses are those of a training without ``ema``; the model is the averaged one."""
    seen, step = [], Trainer._step

    def watched(trainer, batches, number, rate):
        if not seen:
            seen.append(doubles(trainer.labeler))
        step(trainer, batches, number, rate)
        seen.append(doubles(trainer.labeler))

    keys = {"iteration": 3, "optimizer": "Adam", "learning_rate": 0.02, "dropout": 0.2}
    keys["train_dir"] = str(SAMPLE / "train.bioes")
    Tagger.train(small_keys(tmp_path / "plain", **keys))
    monkeypatch.setattr(Trainer, "_step", watched)
    tagger = Tagger.train(small_keys(tmp_path / "ema", ema=0.9, **keys))
    plain, with_ema = (history(tmp_path / name) for name in ("plain", "ema"))
    assert [e["loss"] for e in plain] == [e["loss"] for e in with_ema]
    assert [e["dev"] for e in plain] != [e["dev"] for e in with_ema]
    best = max(with_ema, key=lambda entry: entry["dev"]["f1"])
    score = Tagger.load(tmp_path / "ema").evaluate(SAMPLE / "test.bioes")
    assert score.f1 == best["dev"]["f1"] == tagger.evaluate(SAMPLE / "test.bioes").f1
    expected, *later = seen
    for number, weights in enumerate(later[: best["epoch"] * len(later) // 3]):
        expected = moved(expected, weights, min(0.9, (1 + number) / (10 + number)))
    for name, values in read_tensors(tmp_path / "ema" / "model.safetensors").items():
        if values.is_floating_point():
            torch.testing.assert_close(
                values.double().nan_to_num(), expected[name].nan_to_num(), atol=1e-5, rtol=1e-4
            )


@pytest.mark.parametrize("dev", [True, False])
@pytest.mark.parametrize("keys", [{}, {"optimizer": "Adam", "word_seq_feature": "CNN"}])
def test_a_resumed_training_equals_an_unbroken_one(tmp_path, monkeypatch, keys, dev):
    """Stopped within an epoch, where rows have decays to make up for."""
    monkeypatch.setattr("ncrf.model.representation._ROWWISE_ROWS", 10)
    monkeypatch.setattr(average, "_LARGE", 500)
    keys = {"iteration": 2, "ema": 0.99, "checkpoint_every": 1e-9, **keys}
    if not dev:
        keys["dev_dir"] = None
    Tagger.train(small_keys(tmp_path / "whole", **keys))
    with stopping_at(epoch=1, step=5):
        Tagger.train(small_keys(tmp_path / "broken", **keys))
    Tagger.train(small_keys(tmp_path / "broken", resume=True, **keys))
    whole, broken = (
        (tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "broken")
    )
    assert whole == broken


def history(folder):
    lines = (folder / "history.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
