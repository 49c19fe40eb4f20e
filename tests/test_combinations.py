"""All forty combinations of layers train, save, load and decode; padding never shows."""

import itertools

import pytest

from ncrf import Tagger
from tests.conftest import SAMPLE, small_keys

CHARS = ("CNN", "LSTM", "GRU", "ALL", None)
WORDS = ("LSTM", "GRU", "CNN", None)
SENTENCES = [["Bo"], ["Anna", "met", "Bo", "in", "Oslo"], ["a", "b"], ["the", "end"] * 20]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "train.bioes"
    blocks = (SAMPLE / "dev.bioes").read_text(encoding="utf-8").split("\n\n")
    path.write_text("\n\n".join(blocks[:20]) + "\n\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("chars", "words", "use_crf"), list(itertools.product(CHARS, WORDS, (True, False)))
)
def test_combination(corpus, tmp_path, chars, words, use_crf):
    keys = {
        "train_dir": str(corpus),
        "dev_dir": str(corpus),
        "iteration": 1,
        "use_char": chars is not None,
        "char_seq_feature": chars or "CNN",
        "use_word_seq": words is not None,
        "word_seq_feature": words or "LSTM",
        "use_crf": use_crf,
    }
    tagger = Tagger.train(small_keys(tmp_path / "model", **keys))
    together = tagger.predict(SENTENCES, nbest=2)
    assert Tagger.load(tmp_path / "model").predict(SENTENCES, nbest=2) == together
    for sentence, expected in zip(SENTENCES, together, strict=True):
        (alone,) = tagger.predict([sentence], nbest=2)
        assert alone.labels == expected.labels
        for one, other in zip(alone.nbest, expected.nbest, strict=True):
            assert one.probability == pytest.approx(other.probability, abs=1e-5)


@pytest.mark.parametrize(
    "keys",
    [
        {"lstm_layer": 2},
        {"lstm_layer": 2, "bilstm": False},
        {"word_seq_feature": "CNN", "cnn_padding": 4, "bucket": False},
    ],
)
def test_keys_of_a_word_layer(corpus, tmp_path, keys):
    keys = {"train_dir": str(corpus), "dev_dir": None, "iteration": 1, **keys}
    tagger = Tagger.train(small_keys(tmp_path / "model", **keys))
    (alone,) = tagger.predict(SENTENCES[1:2])
    assert alone.probability == pytest.approx(tagger.predict(SENTENCES)[1].probability, abs=1e-5)


@pytest.mark.parametrize("parts", [{"use_word_emb": False}, {"use_char": False}])
def test_word_or_characters_can_be_left_out(corpus, tmp_path, parts):
    keys = {"train_dir": str(corpus), "dev_dir": None, "iteration": 1, **parts}
    tagger = Tagger.train(small_keys(tmp_path / "model", **keys))
    assert len(tagger.predict(SENTENCES)) == 4
