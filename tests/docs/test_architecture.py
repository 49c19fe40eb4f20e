"""The walk of docs/architecture.md: every step is done, and every name on the page exists."""

import importlib
import re

import pytest
import torch

from ncrf.crf import LinearChainCRF
from ncrf.model.folder import read_description
from tests.docs.pages import DOCS, prepare, run_page

TEXT = (DOCS / "architecture.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`(ncrf(?:\.\w+)+)`", TEXT)))


@pytest.mark.parametrize("name", NAMES)
def test_every_name_on_the_page_exists(name):
    module, _, attribute = name.rpartition(".")
    assert callable(getattr(importlib.import_module(module), attribute)) or attribute.isupper()


def test_the_page_names_something_on_every_step():
    assert len(NAMES) > 30
    steps = re.split(r"^## (?=\d)", TEXT, flags=re.MULTILINE)[1:]
    assert [int(step.split(".")[0]) for step in steps] == list(range(1, 14))
    assert all(re.search(r"`ncrf\.", step) for step in steps)


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    """What the blocks of the page made, and the folder they made it in."""
    folder = tmp_path_factory.mktemp("walk")
    prepare(folder, sentences=40)
    return run_page("architecture", folder), folder


def test_from_the_file_to_the_data_set(walk):
    made, folder = walk
    first = (folder / "sample_data" / "train.bioes").read_text(encoding="utf-8").split("\n\n")[0]
    rows = [row.split(" ") for row in first.split("\n")]
    sentence = made["sentence"]
    assert [sentence.words, sentence.labels] == [list(column) for column in zip(*rows, strict=True)]
    assert made["corpus"].num_sentences == made["dataset"].num_sentences == 40
    assert made["scheme"].source == made["scheme"].target == "BIOES"
    strings, dataset = made["vocabulary"].labels.strings, made["dataset"]
    assert [strings[i] for i in dataset.labels[: len(rows)]] == sentence.labels
    words = dataset.type_table.words[dataset.types[: len(rows)]]
    assert [made["vocabulary"].words.strings[i] for i in words] == [
        made["vocabulary"].normalization.key(word) for word in sentence.words
    ]


def test_from_the_batch_to_the_loss(walk):
    made, _ = walk
    batch, labeler, config = made["batch"], made["labeler"], made["config"]
    size, longest = batch.mask.shape
    assert size == config.training.batch_size and longest == batch.lengths.max()
    assert torch.equal(batch.mask.sum(1), batch.lengths)
    width = config.words.word_emb_dim + config.chars.char_hidden_dim
    assert made["word_vectors"].shape == (size, longest, width)
    assert made["states"].shape == (size, longest, config.word_layer.hidden_dim)
    labels = len(made["vocabulary"].labels)
    assert made["emissions"].shape == (size, longest, labels)
    crf = LinearChainCRF(labels)  # as fresh as the labeler's: its transitions are zero
    scores = made["emissions"].detach().log_softmax(2).gather(2, batch.labels.unsqueeze(2))
    expected = -scores.squeeze(2)[batch.mask].sum()
    torch.testing.assert_close(made["loss"].detach(), expected)
    torch.testing.assert_close(-crf(made["emissions"].detach(), batch.labels, batch.mask), expected)
    assert all(p.grad is not None for p in labeler.parameters() if p.requires_grad)


def test_from_the_model_to_the_written_file(walk):
    made, folder = walk
    config, vocabulary = read_description(folder / "runs" / "walk")
    assert config == made["predictor"].config and vocabulary == made["vocabulary"]
    gold = (folder / "sample_data" / "dev.bioes").read_text(encoding="utf-8")
    written = (folder / "runs" / "walk.out").read_text(encoding="utf-8")
    predictions, score = made["predictions"], made["score"]
    words = [[row.split(" ")[0] for row in b.split("\n")] for b in gold.strip().split("\n\n")]
    assert [prediction.tokens for prediction in predictions] == words
    columns = [len(prediction.nbest) for prediction in predictions]
    found = [b.split("\n") for b in written.strip().split("\n\n")]
    for block, sentence, count in zip(found, words, columns, strict=True):
        assert len(block[0].split(" ")) == len(block[1].split(" ")) == count + 1
        assert [row.split(" ")[0] for row in block[1:]] == sentence
    right = sum(
        label == row.split(" ")[1]
        for prediction, b in zip(predictions, gold.strip().split("\n\n"), strict=True)
        for label, row in zip(prediction.labels, b.split("\n"), strict=True)
    )
    assert (score.tokens, score.correct_tokens) == (sum(map(len, words)), right)
