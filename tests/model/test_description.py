"""What is said of a model folder, against the network itself and a folder made by hand."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from ncrf import Tagger
from ncrf.config import load_config, write_config
from ncrf.errors import InputError
from ncrf.model.description import describe, read_history, tensor_shapes
from ncrf.model.description_report import description_lines
from tests.conftest import ROOT, SAMPLE, small_keys


def learned(tagger):
    """How many numbers the network of a tagger has learned."""
    return sum(p.numel() for p in tagger.predictor.labeler.parameters() if p.requires_grad)


class TestOfATrainedModel:
    def test_parameters_are_the_networks(self, trained, tagger):
        parts = describe(trained).parameters()
        assert sum(parts.values()) == learned(tagger)
        labeler = tagger.predictor.labeler
        assert parts["word layer"] == sum(p.numel() for p in labeler.word_layer.parameters())
        assert parts["word embedding"] == labeler.representation.word_embedding.weight.numel()
        labels = len(tagger.vocabulary.labels)
        assert parts["transitions"] == labels * (labels + 2)

    def test_corpus_counts(self, trained):
        text = (SAMPLE / "train.bioes").read_text()
        assert describe(trained).vocabulary.corpus == {
            "sentences": text.count("\n\n"),
            "tokens": sum(1 for line in text.splitlines() if line),
            "entities": text.count(" B-") + text.count(" S-"),
        }

    def test_best_epoch(self, trained):
        epochs = [json.loads(line) for line in (trained / "history.jsonl").read_text().splitlines()]
        f1 = [epoch["dev"]["f1"] for epoch in epochs]
        best = describe(trained).best()
        assert best["dev"]["f1"] == max(f1)
        assert best["epoch"] == f1.index(max(f1)) + 1

    def test_files(self, trained):
        model = describe(trained)
        assert not model.unfinished
        assert model.files["model.safetensors"] == (trained / "model.safetensors").stat().st_size
        assert set(model.files) == {
            "alphabets.json",
            "config.yaml",
            "history.jsonl",
            "manifest.json",
            "model.safetensors",
        }

    def test_features_normalization_and_softmax(self, tmp_path):
        keys = small_keys(
            tmp_path / "m",
            train_dir=SAMPLE / "dev.cappos.bioes",
            dev_dir=None,
            iteration=1,
            use_crf=False,
            word_seq_feature="CNN",
            cnn_padding=3,
            char_seq_feature="ALL",
            feature=["[POS] emb_size=7", "[shape] from=capitalization"],
        )
        tagger = Tagger.train(keys)
        model = describe(tmp_path / "m")
        parts = model.parameters()
        assert sum(parts.values()) == learned(tagger)  # neither running means nor transitions
        assert "transitions" not in parts
        assert [part for part in parts if part.startswith("[")] == [
            f"[{spec.name}] embedding" for spec in tagger.config.corpus.feature
        ]
        values = len(tagger.vocabulary.features["POS"])
        assert parts["[POS] embedding"] == 7 * values
        lines = "\n".join(description_lines(model))
        assert f"feature [POS]: embedding {values} x 7\n" in lines
        assert "computed from capitalization" in lines
        assert "then ALL, 20 wide" in lines
        assert "sentence: CNN, 20 wide, 4 layers, 3 padding words" in lines
        assert "labels: softmax, constraints=decode" in lines
        assert "there was no dev corpus" in lines

    def test_a_saved_model_has_the_history_and_needs_none(self, trained, tagger, tmp_path):
        tagger.save(tmp_path / "saved")
        assert describe(tmp_path / "saved").best() == describe(trained).best()
        (tmp_path / "saved" / "history.jsonl").unlink()
        model = describe(tmp_path / "saved")
        assert model.best() is None
        assert "there is no history.jsonl" in "\n".join(description_lines(model))
        assert model.vocabulary.corpus["sentences"] == 600


@pytest.fixture
def handmade(tmp_path):
    """A model folder made without any of the code that trains."""
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "vectors").touch()
    keys = {
        "train_dir": "corpus/train",
        "model_dir": "model",
        "word_emb_dir": str(tmp_path / "vectors"),
        "use_char": False,
        "word_seq_feature": "GRU",
        "lstm_layer": 2,
        "hidden_dim": 6,
        "feature": ["[POS] emb_dir=nowhere"],
        "iteration": 7,
    }
    write_config(load_config(keys, check_files=False), folder / "config.yaml")

    def alphabet(*strings, special=("<pad>", "<unk>")):
        return {"special": list(special), "strings": list(strings), "counts": [1] * len(strings)}

    alphabets = {
        "format": 1,
        "words": alphabet("Anna", "met", "0000"),
        "characters": alphabet("A"),
        "features": {"POS": alphabet("X")},
        "labels": alphabet("B-PER", "O", special=()),
        "scheme": {"source": "IOB1", "target": "IOB2", "delimiter": "-"},
        "number_normalized": True,
        "corpus": {"sentences": 1234, "tokens": 56789, "entities": 12},
    }
    (folder / "alphabets.json").write_text(json.dumps(alphabets))
    tensors = {
        "representation.word_embedding.weight": (5, 4),
        "representation.feature_embeddings.0.weight": (3, 20),
        "word_layer.recurrent.rnn.weight": (100, 13),
        "projection.weight": (2, 6),
        "projection.bias": (2,),
        "inference.crf.transitions": (2, 2),
        "norm.running_mean": (9,),
        "mine.extra": (1, 1),
    }
    arrays = {name: np.zeros(shape, np.float32) for name, shape in tensors.items()}
    save_file(arrays, folder / "model.safetensors")
    (folder / "history.jsonl").write_text(
        "".join(
            json.dumps(
                {
                    "epoch": number,
                    "dev": {"precision": f1 + 0.1, "recall": f1 - 0.1, "f1": f1, "accuracy": 0.9},
                    "best": best,
                }
            )
            + "\n"
            for number, f1, best in ((1, 0.25, True), (2, 0.5, True), (3, 0.375, False))
        )
    )
    return folder


def test_report(handmade):
    sizes = {path.name: path.stat().st_size for path in handmade.iterdir()}
    lines = description_lines(describe(handmade))
    at = lines.index(next(line for line in lines if line.startswith("  files")))
    assert lines[:at] == [
        f"model {handmade}",
        "  trained on    corpus/train",
        "                sentences 1,234, tokens 56,789, entities 12",
        "  scheme        IOB1 in the corpus, IOB2 in the model",
        "  labels        2: B-PER O",
        "  alphabets     words 3 (digits as 0), characters 1, [POS] 1; "
        "padding and unknown not counted",
        "  layers        words: embedding 5 x 4",
        "                feature [POS]: embedding 3 x 20",
        "                sentence: GRU, 6 wide, 2 layers, both directions",
        "                labels: CRF, constraints=decode",
        "  parameters    1,399",
        "                          20  word embedding",
        "                          60  [POS] embedding",
        "                       1,300  word layer",
        "                          14  projection to labels",
        "                           4  transitions",
        "                           1  mine",
        "  epochs        3 (iteration=7)",
        "  scores        best in epoch 2: F1 50.00 (precision 60.00, recall 40.00), "
        "accuracy 90.00 on dev",
        f"  vectors       {handmade.parent}/vectors",
        "                nowhere ([POS]), not there now",
    ]
    assert [line.split() for line in lines[at:]][1][-1] == "config.yaml"
    assert f"{sizes['history.jsonl']} B  history.jsonl" in "\n".join(lines[at:])


def test_an_unfinished_training_says_so(handmade):
    (handmade / "training").mkdir()
    (handmade / "training" / "state.safetensors").write_bytes(bytes(3000))
    lines = description_lines(describe(handmade))
    assert lines[0] == f"unfinished training {handmade}"
    assert lines[-1].split() == ["2.9", "KiB", "training/state.safetensors"]


def test_a_folder_without_corpus_counts(handmade):
    content = json.loads((handmade / "alphabets.json").read_text())
    del content["corpus"]
    (handmade / "alphabets.json").write_text(json.dumps(content))
    assert "its size was not stored" in "\n".join(description_lines(describe(handmade)))


def test_a_plain_model_has_an_accuracy(handmade):
    content = json.loads((handmade / "alphabets.json").read_text())
    content["scheme"] = {"source": "plain", "target": "plain", "delimiter": "-"}
    (handmade / "alphabets.json").write_text(json.dumps(content))
    dev = dict.fromkeys(("precision", "recall", "f1", "accuracy"), 0.5)
    (handmade / "history.jsonl").write_text(json.dumps({"epoch": 1, "dev": dev, "best": True}))
    lines = description_lines(describe(handmade))
    assert "  scheme        plain" in lines
    assert "                labels: CRF" in lines
    assert "  scores        best in epoch 1: accuracy 50.00 on dev" in lines


@pytest.mark.parametrize("with_dev", [True, False])
def test_the_test_score_is_told(handmade, with_dev):
    scores = {"precision": 0.6, "recall": 0.4, "f1": 0.48, "accuracy": 0.9}
    dev = scores if with_dev else None
    epoch = {"epoch": 1, "dev": dev, "best": True, "test": scores}
    (handmade / "history.jsonl").write_text(json.dumps(epoch))
    told = "F1 48.00 (precision 60.00, recall 40.00), accuracy 90.00 on test"
    assert f"                {told}" in description_lines(describe(handmade))
    (handmade / "history.jsonl").write_text(json.dumps({**epoch, "test": {"f1": 2}}))
    with pytest.raises(InputError, match="is damaged"):
        describe(handmade)


CHARACTERS = {"representation.char_embedding.weight": (3, 8)}


class TestWidths:
    """Widths are those of the tensors, whatever the keys say."""

    def reread(self, folder, *, without=(), tensors=(), **keys):
        given = {"train_dir": "x", "model_dir": "model", "word_emb_dim": 4, **keys}
        given["feature"] = ["[POS] emb_size=20"]
        write_config(load_config(given, check_files=False), folder / "config.yaml")
        arrays = {
            name: np.zeros(shape, np.float32)
            for name, shape in {**describe(folder).shapes, **dict(tensors)}.items()
            if name not in without
        }
        save_file(arrays, folder / "model.safetensors")
        return "\n".join(description_lines(describe(folder)))

    def test_a_character_layer_is_what_the_next_one_takes_in_beside_the_embeddings(self, handmade):
        tensors = {**CHARACTERS, "word_layer.recurrent.rnn.weight_ih_l0": (12, 4 + 20 + 49)}
        text = self.reread(handmade, tensors=tensors, char_seq_feature="ALL", hidden_dim=8)
        assert "characters: embedding 3 x 8, then ALL, 49 wide\n" in text
        assert "sentence: LSTM, 6 wide, 1 layer, both directions\n" in text

    def test_without_a_word_layer(self, handmade):
        tensors = {**CHARACTERS, "projection.weight": (2, 4 + 20 + 9)}
        text = self.reread(handmade, tensors=tensors, use_word_seq=False)
        assert "then CNN, 9 wide\n" in text and "sentence: none\n" in text

    def test_a_word_cnn_without_word_embeddings(self, handmade):
        tensors = {**CHARACTERS, "word_layer.input_projection.weight": (6, 20 + 11)}
        text = self.reread(
            handmade,
            tensors=tensors,
            without=["representation.word_embedding.weight"],
            use_word_emb=False,
            word_seq_feature="CNN",
        )
        assert "then CNN, 11 wide\n" in text and "sentence: CNN, 6 wide, 4 layers\n" in text

    def test_what_no_tensor_tells_is_not_said(self, handmade):
        text = self.reread(handmade, tensors=CHARACTERS)
        assert "characters: embedding 3 x 8, then CNN\n" in text


class TestDamaged:
    @pytest.mark.parametrize("line", ["{", "[]", '{"loss": 1}', "7"])
    def test_history(self, line, handmade):
        (handmade / "history.jsonl").write_text(f'{{"epoch": 1}}\n{line}\n')
        with pytest.raises(InputError, match=r"history\.jsonl:2: is damaged"):
            describe(handmade)

    def test_weights(self, handmade):
        (handmade / "model.safetensors").write_bytes(b"no weights")
        with pytest.raises(InputError, match=r"model\.safetensors: is damaged"):
            describe(handmade)
        (handmade / "model.safetensors").unlink()
        with pytest.raises(InputError, match="there are no weights"):
            describe(handmade)

    def test_no_folder(self, tmp_path):
        with pytest.raises(InputError, match="no such model folder"):
            describe(tmp_path / "nothing")
        with pytest.raises(InputError, match=r"alphabets\.json: is missing"):
            describe(tmp_path)


def test_no_history_is_no_epochs(tmp_path):
    assert read_history(tmp_path / "history.jsonl") == []


def test_shapes_are_read_from_the_header(tmp_path):
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(2, 3, dtype=torch.bfloat16)}, tmp_path / "x")
    assert tensor_shapes(tmp_path / "x") == {"a": (2, 3)}


def test_torch_is_not_imported(handmade):
    code = (
        "import sys, ncrf.cli; assert ncrf.cli.main(['info', sys.argv[1]]) == 0;"
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, handmade], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
