"""Training: the best epoch is kept, a stopped training goes on as if it had not stopped."""

import json
import logging
import re
import signal

import pytest
import torch

from ncrf import Tagger, load_config
from ncrf.errors import InputError, NcrfError
from ncrf.evaluate import history_scores
from ncrf.model.folder import read_tensors
from ncrf.train import checkpoint
from ncrf.train.minibatch import Trainer
from ncrf.train.optimizers import LearningRate
from tests.conftest import SAMPLE, small_keys, stopping_at


def history(folder):
    lines = (folder / "history.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def timeless(entries):
    return [
        {k: v for k, v in entry.items() if k not in ("seconds", "sentences_per_second")}
        for entry in entries
    ]


def test_a_model_learns_and_its_best_epoch_is_kept(trained):
    entries = history(trained)
    scores = [entry["dev"]["f1"] for entry in entries]
    assert entries[-1]["loss"] < 0.5 * entries[0]["loss"]
    best = [entry["epoch"] for entry in entries if entry["best"]][-1]
    assert scores[best - 1] == max(scores) > 0.5
    assert Tagger.load(trained).evaluate(SAMPLE / "test.bioes").f1 == pytest.approx(max(scores))


def test_history_has_the_fields_of_the_contract(trained):
    for number, entry in enumerate(history(trained), 1):
        assert list(entry) == [
            "epoch",
            "loss",
            "learning_rate",
            "dev",
            "best",
            "seconds",
            "sentences_per_second",
        ]
        assert set(entry["dev"]) == {"precision", "recall", "f1", "accuracy"}
        assert entry["epoch"] == number
        assert entry["learning_rate"] > 0


@pytest.mark.parametrize("dev", [True, False])
def test_the_test_score_stands_with_the_epoch_that_was_kept(tmp_path, dev):
    keys = small_keys(tmp_path / "m", test_dir=str(SAMPLE / "train.bioes"), optimizer="Adam")
    tagger = Tagger.train(keys | ({} if dev else {"dev_dir": None}), learning_rate=0.01)
    entries = history(tmp_path / "m")
    kept = [entry for entry in entries if entry["best"]][-1]
    assert [entry for entry in entries if "test" in entry] == [kept]
    score = tagger.evaluate(SAMPLE / "train.bioes")
    assert kept["test"] == history_scores(score) and score.accuracy > 0.5


def test_the_model_folder_holds_what_it_should(trained):
    names = {path.name for path in trained.iterdir()}
    assert names == {
        "config.yaml",
        "alphabets.json",
        "model.safetensors",
        "history.jsonl",
        "manifest.json",
    }


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        Tagger.train(small_keys(tmp_path / name))
    Tagger.train(small_keys(tmp_path / "c", seed=7))
    first, second, other = ((tmp_path / n / "model.safetensors").read_bytes() for n in "abc")
    assert first == second != other


def test_training_leaves_the_random_state_of_the_process_alone(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    Tagger.train(small_keys(tmp_path / "model", iteration=1))
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(("optimizer", "dev"), [("SGD", True), ("Adam", True), ("SGD", False)])
def test_a_resumed_training_equals_an_unbroken_one(tmp_path, optimizer, dev):
    keys = {"iteration": 4, "optimizer": optimizer, "learning_rate": 0.01, "momentum": 0.5}
    if not dev:
        keys["dev_dir"] = None
    Tagger.train(small_keys(tmp_path / "whole", **keys))
    with stopping_at(epoch=2, step=5):
        Tagger.train(small_keys(tmp_path / "broken", **keys))
    assert checkpoint.folder_state(tmp_path / "broken") == "unfinished"
    if not dev:
        with pytest.raises(InputError, match="unfinished training without a model"):
            Tagger.load(tmp_path / "broken")
    Tagger.train(small_keys(tmp_path / "broken", resume=True, **keys))
    whole, broken = (tmp_path / name for name in ("whole", "broken"))
    assert timeless(history(whole)) == timeless(history(broken))
    for name, values in read_tensors(whole / "model.safetensors").items():
        assert torch.equal(values, read_tensors(broken / "model.safetensors")[name]), name


def test_an_unfinished_training_goes_on_only_as_it_began(tmp_path, monkeypatch):
    def interrupt(trainer, batches, number, rate):
        raise KeyboardInterrupt

    folder = tmp_path / "model"
    step = Trainer._step
    monkeypatch.setattr(
        Trainer, "_step", lambda t, *x: (interrupt if t.progress.epoch else step)(t, *x)
    )
    with pytest.raises(KeyboardInterrupt):
        Tagger.train(small_keys(folder))
    monkeypatch.undo()
    with pytest.raises(InputError, match="hidden_dim was 20, now it is 30"):
        Tagger.train(small_keys(folder, resume=True, hidden_dim=30))
    with pytest.raises(InputError, match="train_dir was"):
        Tagger.train(small_keys(folder, resume=True, train_dir=str(SAMPLE / "test.bioes")))
    with pytest.raises(InputError, match="seed was 42, now it is 1"):
        Tagger.train(small_keys(folder, resume=True, seed=1))
    Tagger.train(small_keys(folder, resume=True, iteration=3))
    assert [entry["epoch"] for entry in history(folder)] == [1, 2, 3]


@pytest.mark.parametrize(("most", "spared"), [(100, 1 << 20), (1 << 14, 8)])
def test_batches_are_computed_in_pieces_and_make_one_step(tmp_path, monkeypatch, most, spared):
    """Where they are too large, and where that spares padding."""
    keys = {"dropout": 0, "unk_singleton": 0, "batch_size": 40, "iteration": 1, "bucket": False}
    monkeypatch.setattr("ncrf.train.minibatch._SPARED", 1 << 20)
    Tagger.train(small_keys(tmp_path / "whole", **keys))
    monkeypatch.setattr("ncrf.train.minibatch._SPARED", spared)
    Tagger.train(small_keys(tmp_path / "pieces", max_batch_tokens=most, **keys))
    whole, pieces = (read_tensors(tmp_path / n / "model.safetensors") for n in ("whole", "pieces"))
    for name, values in whole.items():
        torch.testing.assert_close(pieces[name], values, atol=2e-5, rtol=1e-4)


def test_batch_normalization_sees_whole_batches(tmp_path, monkeypatch):
    keys = {"word_seq_feature": "CNN", "batch_size": 40, "iteration": 1, "bucket": False}
    for spared in (8, 1 << 20):
        monkeypatch.setattr("ncrf.train.minibatch._SPARED", spared)
        Tagger.train(small_keys(tmp_path / str(spared), **keys))
    apart, whole = ((tmp_path / n / "model.safetensors").read_bytes() for n in ("8", "1048576"))
    assert apart == whole


def test_clip_bounds_the_gradient(tmp_path):
    """With a tiny bound the weights hardly move; l2 and momentum are off."""
    keys = {"iteration": 1, "l2": 0, "learning_rate": 0.1}
    moved = {}
    for clip in (None, 1e-6):
        folder = tmp_path / str(clip)
        Tagger.train(small_keys(folder, clip=clip, **keys))
        moved[clip] = read_tensors(folder / "model.safetensors")["inference.crf.transitions"]
    assert moved[None].abs().max() > 1e-2
    assert moved[1e-6].abs().max() < 1e-4


def test_long_sentences_are_skipped_loudly_in_training_alone(tmp_path, caplog):
    lengths = [len(s.split("\n")) for s in (SAMPLE / "dev.bioes").read_text().strip().split("\n\n")]
    longer = sum(length > 8 for length in lengths)
    with caplog.at_level(logging.INFO, "ncrf"):
        Tagger.train(small_keys(tmp_path / "model", MAX_SENTENCE_LENGTH=8, iteration=1))
    assert f"skips {longer} of {len(lengths)} sentences" in caplog.text
    assert 0 < longer < len(lengths)


def test_a_loss_that_is_not_finite_stops_with_the_place(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "ncrf.model.labeler.Labeler.loss", lambda self, batch, _: self(batch).sum() * float("nan")
    )
    with pytest.raises(NcrfError, match=r"loss is nan in epoch 1, batch 1 \(sentences at lines"):
        Tagger.train(small_keys(tmp_path / "model"))


@pytest.mark.parametrize("constraints", ["all", "decode"])
def test_a_forbidden_gold_labeling_is_refused_only_where_it_has_no_probability(
    tmp_path, constraints
):
    corpus = tmp_path / "train.bio"
    corpus.write_text("Anna B-PER\nleft O\n\nBo B-PER\nBo I-LOC\n\n")
    keys = {"train_dir": str(corpus), "dev_dir": None, "iteration": 1, "constraints": constraints}
    if constraints == "decode":
        Tagger.train(small_keys(tmp_path / "model", **keys))
        return
    with pytest.raises(InputError, match=rf"^{corpus}:5: .*I-LOC after B-PER"):
        Tagger.train(small_keys(tmp_path / "model", **keys))
    assert not (tmp_path / "model").exists()


def test_numbers_that_are_not_finite_stop_with_the_sentence(tmp_path, monkeypatch):
    forward = torch.nn.Linear.forward

    def broken(layer, states):
        return forward(layer, states) * float("nan")

    monkeypatch.setattr(torch.nn.Linear, "forward", broken)
    with pytest.raises(NcrfError, match=r"nan in epoch 1, batch 1 \(sentences at lines \d+, "):
        Tagger.train(small_keys(tmp_path / "model"))


def test_weights_that_are_not_finite_stop_before_they_are_kept(tmp_path):
    keys = {"learning_rate": 1e30, "batch_size": 1000, "iteration": 1}
    with pytest.raises(NcrfError, match=r"test.bioes:\d+: .*training diverged"):
        Tagger.train(small_keys(tmp_path / "model", **keys))
    assert not (tmp_path / "model" / "model.safetensors").exists()


def test_without_dev_the_last_epoch_is_kept(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "ncrf"):
        Tagger.train(small_keys(tmp_path / "model", dev_dir=None, iteration=2))
    assert "no dev_dir: the last epoch is kept" in caplog.text
    assert [entry["dev"] for entry in history(tmp_path / "model")] == [None, None]


def test_patience_ends_the_training(tmp_path):
    keys = small_keys(tmp_path / "model", patience=2, iteration=30, learning_rate=1e-6)
    Tagger.train(keys)
    assert len(history(tmp_path / "model")) < 30


class TestModelFolder:
    def test_unset(self):
        with pytest.raises(InputError, match="model_dir"):
            Tagger.train({"train_dir": str(SAMPLE / "dev.bioes"), "model_dir": None})

    def test_finished_needs_overwrite(self, trained, tmp_path):
        before = (trained / "model.safetensors").read_bytes()
        with pytest.raises(InputError, match="overwrite=True"):
            Tagger.train(small_keys(trained))
        assert (trained / "model.safetensors").read_bytes() == before

    def test_unfinished_names_both_ways_on(self, tmp_path):
        (tmp_path / "model" / "training").mkdir(parents=True)
        with pytest.raises(InputError, match=r"resume=True.*overwrite=True"):
            Tagger.train(small_keys(tmp_path / "model"))

    def test_anything_else_is_not_touched(self, tmp_path):
        (tmp_path / "thesis.tex").write_text("years of work")
        for way in ({}, {"overwrite": True}, {"resume": True}):
            with pytest.raises(InputError, match="not a model folder"):
                Tagger.train(small_keys(tmp_path, **way))
        assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]

    @pytest.mark.parametrize("place", ["file/model", "/proc/no/model"])
    def test_a_place_where_none_can_be(self, tmp_path, place):
        (tmp_path / "file").write_text("")
        with pytest.raises(NcrfError, match="cannot be made"):
            Tagger.train(small_keys(tmp_path / place, iteration=1))

    def test_overwrite_replaces_a_finished_model(self, tmp_path):
        Tagger.train(small_keys(tmp_path / "model", iteration=1))
        Tagger.train(small_keys(tmp_path / "model", iteration=1, overwrite=True, seed=3))
        assert len(history(tmp_path / "model")) == 1


def training_keys(**keys):
    return load_config(keys, check_files=False).training


class TestLearningRate:
    def test_decay_is_that_of_ncrfpp(self):
        rate = LearningRate(training_keys(learning_rate=0.015, lr_decay=0.05))
        assert [rate.at(i, 1.0) for i in (0, 1, 10)] == pytest.approx([0.015, 0.015 / 1.05, 0.01])

    @pytest.mark.parametrize(("schedule", "later"), [("auto", 0.03), ("decay", 0.02)])
    def test_other_optimizers_decay_only_when_asked(self, schedule, later):
        keys = training_keys(
            optimizer="adam", learning_rate=0.03, lr_decay=0.05, lr_schedule=schedule
        )
        assert LearningRate(keys).at(10, 1.0) == pytest.approx(later)

    def test_cosine_ends_at_zero_after_warmup(self):
        keys = training_keys(lr_schedule="cosine", warmup=1, iteration=5, learning_rate=0.1)
        rate = LearningRate(keys)
        assert rate.at(0, 0.5) == pytest.approx(0.05)
        assert rate.at(0, 1.0) == pytest.approx(0.1)
        assert rate.at(3, 0.0) == pytest.approx(0.05)
        assert rate.at(4, 1.0) == pytest.approx(0.0, abs=1e-12)

    def test_plateau_halves_after_epochs_without_a_rise(self):
        rate = LearningRate(training_keys(lr_schedule="plateau", learning_rate=0.1, dev_dir="dev"))
        for rose in (True, False, False):
            rate.epoch_done(rose)
        assert rate.at(3, 1.0) == pytest.approx(0.1)
        rate.epoch_done(False)
        assert rate.at(4, 1.0) == pytest.approx(0.05)


class TestOverwrite:
    """The old model is whole and in use until there is a better one."""

    @pytest.fixture
    def old(self, tmp_path):
        Tagger.train(small_keys(tmp_path / "model", iteration=1))
        return tmp_path / "model", Tagger.load(tmp_path / "model").predict([["Anna", "left"]])

    def test_a_failed_training_keeps_the_old_model(self, old, monkeypatch):
        folder, expected = old
        monkeypatch.setattr(
            "ncrf.model.labeler.Labeler.loss",
            lambda self, batch, _: self(batch).sum() * float("nan"),
        )
        with pytest.raises(NcrfError, match="no model is kept"):
            Tagger.train(small_keys(folder, overwrite=True, hidden_dim=30))
        assert Tagger.load(folder).predict([["Anna", "left"]]) == expected
        assert len(history(folder)) == 1

    def test_a_full_disk_keeps_the_old_model(self, old, monkeypatch):
        folder, expected = old

        def no_space(number):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", no_space)
        with pytest.raises(NcrfError, match="No space left"):
            Tagger.train(small_keys(folder, overwrite=True, hidden_dim=30))
        monkeypatch.undo()
        assert Tagger.load(folder).predict([["Anna", "left"]]) == expected
        Tagger.train(small_keys(folder, overwrite=True, hidden_dim=30))
        assert Tagger.load(folder).config.word_layer.hidden_dim == 30


def test_a_feature_line_without_its_column_is_an_error(tmp_path):
    keys = {"train_dir": str(SAMPLE / "dev.cappos.bioes"), "feature": ["[Pos] emb_size=5"]}
    with pytest.raises(InputError, match=r"feature=\[Pos\].*no such column.*\[Cap\], \[POS\]"):
        Tagger.train(small_keys(tmp_path / "model", **keys))


def test_labels_that_the_declared_scheme_has_not(tmp_path):
    with pytest.raises(InputError, match=r"input_scheme=IOB2, but [ES]-\w+ is none of its labels"):
        Tagger.train(small_keys(tmp_path / "model", input_scheme="IOB2"))


def test_trainings_in_threads_give_what_one_alone_gives(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    folders = [tmp_path / name for name in "abc"]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda folder: Tagger.train(small_keys(folder, iteration=1)), folders))
    first, *others = ((folder / "model.safetensors").read_bytes() for folder in folders)
    assert others == [first, first]


def test_an_averaged_loss_takes_the_summed_step_divided_by_the_sentences(tmp_path):
    """One batch of ten sentences: summed at 0.001 moves as averaged at 0.01."""
    blocks = (SAMPLE / "dev.bioes").read_text(encoding="utf-8").split("\n\n")[:10]
    (tmp_path / "ten").write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    keys = {"train_dir": str(tmp_path / "ten"), "dev_dir": None, "iteration": 1, "l2": 0}
    Tagger.train(small_keys(tmp_path / "sum", learning_rate=0.001, **keys))
    Tagger.train(small_keys(tmp_path / "mean", learning_rate=0.01, ave_batch_loss=True, **keys))
    summed, mean = (read_tensors(tmp_path / n / "model.safetensors") for n in ("sum", "mean"))
    start = read_tensors_of_a_fresh_model(tmp_path, keys)
    for name, values in summed.items():
        torch.testing.assert_close(values, mean[name], atol=1e-6, rtol=1e-4)
    assert any(not torch.equal(values, start[name]) for name, values in summed.items())


def read_tensors_of_a_fresh_model(tmp_path, keys):
    """The weights after a step too small to move them."""
    Tagger.train(small_keys(tmp_path / "fresh", learning_rate=1e-20, **keys))
    return read_tensors(tmp_path / "fresh" / "model.safetensors")


@pytest.mark.parametrize("normalize", [False, True])
def test_features_and_characters_start_from_their_vectors(tmp_path, normalize):
    (tmp_path / "pos").write_text("NOUN 3 4\nVERB 1 0\n")
    (tmp_path / "char").write_text("a 0 2 0\nb 1 1 1\n")
    keys = {
        "train_dir": str(SAMPLE / "dev.cappos.bioes"),
        "dev_dir": None,
        "iteration": 1,
        "learning_rate": 1e-20,
        "feature": [f"[POS] emb_dir={tmp_path / 'pos'} emb_norm={normalize}"],
        "char_emb_dir": str(tmp_path / "char"),
        "norm_char_emb": normalize,
    }
    tagger = Tagger.train(small_keys(tmp_path / "model", **keys))
    representation, vocabulary = tagger.predictor.labeler.representation, tagger.vocabulary
    names = list(vocabulary.features)
    table = representation.feature_embeddings[names.index("POS")].weight
    assert table.shape[1] == 2 and tagger.config.chars.char_emb_dim == 3
    row = table[vocabulary.features["POS"].id("NOUN")].tolist()
    assert row == pytest.approx([0.6, 0.8] if normalize else [3, 4])
    row = representation.char_embedding.weight[vocabulary.characters.id("a")].tolist()
    assert row == pytest.approx([0, 1 if normalize else 2, 0])
    assert Tagger.load(tmp_path / "model").config.corpus.feature == tagger.config.corpus.feature


def test_mixed_precision_learns_the_same_within_its_precision(tmp_path):
    keys = {"iteration": 2, "dropout": 0, "unk_singleton": 0}
    losses = {}
    for amp in ("none", "bf16"):
        Tagger.train(small_keys(tmp_path / amp, amp=amp, **keys))
        losses[amp] = [entry["loss"] for entry in history(tmp_path / amp)]
    assert losses["bf16"] != losses["none"]
    assert losses["bf16"] == pytest.approx(losses["none"], rel=0.05)


def test_a_training_goes_on_within_an_epoch(tmp_path, monkeypatch):
    """Written after every step, stopped in the middle of one: the rest is as if nothing was."""
    Tagger.train(small_keys(tmp_path / "whole", iteration=3))
    step = Trainer._step

    def stopping_step(trainer, batches, number, rate):
        if trainer.progress.epoch == 1 and number == 7:
            raise OSError("pulled the plug")
        return step(trainer, batches, number, rate)

    monkeypatch.setattr(Trainer, "_step", stopping_step)
    keys = {"iteration": 3, "checkpoint_every": 1e-9}
    with pytest.raises(OSError, match="plug"):
        Tagger.train(small_keys(tmp_path / "broken", **keys))
    monkeypatch.undo()
    counted = []
    monkeypatch.setattr(Trainer, "_step", lambda t, *x: (counted.append(x[1]), step(t, *x))[1])
    Tagger.train(small_keys(tmp_path / "broken", resume=True, **keys))
    assert counted[0] == 7
    whole, broken = (tmp_path / name for name in ("whole", "broken"))
    assert timeless(history(whole)) == timeless(history(broken))
    assert (whole / "model.safetensors").read_bytes() == (broken / "model.safetensors").read_bytes()


def test_the_first_ctrl_c_ends_the_step_and_writes(tmp_path, monkeypatch, caplog):
    step = Trainer._step

    def interrupted_step(trainer, batches, number, rate):
        if trainer.progress.epoch == 1 and number == 3:
            signal.raise_signal(signal.SIGINT)
        return step(trainer, batches, number, rate)

    monkeypatch.setattr(Trainer, "_step", interrupted_step)
    with caplog.at_level(logging.INFO, "ncrf"), pytest.raises(KeyboardInterrupt):
        Tagger.train(small_keys(tmp_path / "model", iteration=2))
    assert "interrupted after epoch 1 and 3 steps; resume=True goes on" in caplog.text
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.undo()
    Tagger.train(small_keys(tmp_path / "model", iteration=2, resume=True))
    Tagger.train(small_keys(tmp_path / "whole", iteration=2))
    assert timeless(history(tmp_path / "model")) == timeless(history(tmp_path / "whole"))


def test_an_exploding_loss_says_what_to_try_once(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "ncrf"):
        Tagger.train(small_keys(tmp_path / "model", iteration=3, learning_rate=1.0))
    assert caplog.text.count("the loss explodes") == 1
    assert "clip=5" in caplog.text


@pytest.mark.parametrize("clip", [None, 1e6])
def test_a_gradient_far_longer_than_usual_is_said_once(clip, tmp_path, monkeypatch, caplog):
    class Longer(torch.autograd.Function):
        calls = 0

        @staticmethod
        def forward(ctx, values):
            return values.clone()

        @staticmethod
        def backward(ctx, grad):
            Longer.calls += 1
            return grad * (1000.0 if Longer.calls in (8, 9) else 1.0)

    forward = torch.nn.Linear.forward
    monkeypatch.setattr(
        torch.nn.Linear, "forward", lambda layer, states: Longer.apply(forward(layer, states))
    )
    monkeypatch.setattr("ncrf.train.progress._BLOCK", 5)
    with caplog.at_level(logging.WARNING, "ncrf"):
        Tagger.train(small_keys(tmp_path / "model", iteration=1, clip=clip, learning_rate=1e-6))
    assert Longer.calls > 9
    said = re.findall(
        r"epoch 1, batch 8 \(sentences at lines .*\): a gradient .*clip=", caplog.text
    )
    assert len(said) == (clip is None) == caplog.text.count("a gradient of norm")


def test_a_gradient_that_is_not_finite_stops_with_the_place(tmp_path, monkeypatch):
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values):
            return values.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * float("inf")

    forward = torch.nn.Linear.forward
    monkeypatch.setattr(
        torch.nn.Linear, "forward", lambda layer, states: Broken.apply(forward(layer, states))
    )
    with pytest.raises(NcrfError, match=r"norm of the gradient is .* in epoch 1, batch 1 \(sent"):
        Tagger.train(small_keys(tmp_path / "model"))
