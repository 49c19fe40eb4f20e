"""Words that training did not see: their vectors, wherever they come from, and a word if not."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from ncrf import Tagger
from ncrf.cli import main
from ncrf.config import load_config
from ncrf.decode.load import load_predictor
from ncrf.errors import ConfigError, InputError
from tests.conftest import SAMPLE, small_keys

NEW = ["Anna", "saw", "Zyxburgh"]


@pytest.fixture
def vectors(tmp_path):
    """A vector file with a word that no sample file has."""
    rng = np.random.default_rng(0)
    path = tmp_path / "vectors.txt"
    rows = {word: rng.normal(size=8) for word in ("Anna", "saw", "the", "zyxburgh")}
    lines = (f"{word} {' '.join(f'{x:.4f}' for x in row)}" for word, row in rows.items())
    path.write_text("\n".join(lines) + "\n")
    return path


def train(tmp_path, vectors, **keys):
    keys = {"word_emb_dir": str(vectors), "dev_dir": None, "iteration": 1, **keys}
    return Tagger.train(small_keys(tmp_path / "model", **keys))


def emissions(tagger, words):
    """P of every label of the last word, as a list: what a new vector changes."""
    (prediction,) = tagger.predict([words], nbest=50)
    return [labeling.probability for labeling in prediction.nbest]


def test_new_words_have_their_rows_untrained_and_by_lower_case(tmp_path, vectors):
    tagger = train(tmp_path, vectors)
    assert "Zyxburgh" not in tagger.vocabulary.words
    with_row = emissions(tagger, NEW)
    assert with_row == emissions(Tagger.load(tmp_path / "model"), NEW)
    # The same characters without a row: the digits keep the character layer's input equal.
    vectors.unlink()
    assert with_row != pytest.approx(emissions(Tagger.load(tmp_path / "model"), NEW), abs=1e-6)


def test_without_the_file_there_is_one_warning_with_the_count(tmp_path, vectors, capsys):
    train(tmp_path, vectors)
    vectors.unlink()
    raw = tmp_path / "raw"
    raw.write_text("Anna\nsaw\nZyxburgh\nQwrt\n\nZyxburgh\n")
    command = ["decode", "--raw", str(raw), "--loadmodel", str(tmp_path / "model")]
    assert main([*command, "--output", str(tmp_path / "out"), "--threads", "1"]) == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if "not at hand" in line]
    known = Tagger.load(tmp_path / "model").vocabulary.words
    count = sum(word not in known for word in raw.read_text().split())
    assert len(warnings) == 1 and f"{count} words" in warnings[0] and str(vectors) in warnings[0]


def test_kept_vectors_are_those_of_the_file(tmp_path, vectors, monkeypatch):
    monkeypatch.setattr("ncrf.data.vector_cache.SMALLEST", 1)
    place = tmp_path / "cache"
    tagger = train(tmp_path / "off", vectors, vector_cache="off")
    expected = emissions(tagger, NEW)
    for _ in range(2):  # written, then mapped
        kept = train(tmp_path / "kept", vectors, vector_cache=str(place), overwrite=True)
        assert emissions(kept, NEW) == expected
    found = Tagger.load(tmp_path / "kept" / "model", vector_cache=str(place))
    assert emissions(found, NEW) == expected
    assert len(list(place.glob("*.safetensors"))) == 1
    assert not (tmp_path / ".ncrf_cache").exists()


def test_vectors_can_be_kept_in_the_model(tmp_path, vectors):
    tagger = train(tmp_path, vectors, vectors_in_model=True)
    expected = emissions(tagger, NEW)
    vectors.unlink()
    again = Tagger.load(tmp_path / "model")
    assert emissions(again, NEW) == pytest.approx(expected, abs=1e-3)  # float16 rows
    stored = load_file(tmp_path / "model" / "vectors.safetensors")
    assert stored["words"].tobytes() == b"Anna\nsaw\nthe\nzyxburgh"
    assert (stored["rows"].dtype, stored["rows"].shape) == (np.float16, (4, 8))
    again.save(tmp_path / "copy")
    assert emissions(Tagger.load(tmp_path / "copy"), NEW) == emissions(again, NEW)


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"", lambda data: b"x"])
def test_damaged_vectors_of_a_model_are_an_error_that_names_them(tmp_path, vectors, damage):
    train(tmp_path, vectors, vectors_in_model=True)
    stored = tmp_path / "model" / "vectors.safetensors"
    stored.write_bytes(damage(stored.read_bytes()))
    with pytest.raises(InputError, match="is damaged") as caught:
        Tagger.load(tmp_path / "model")
    assert caught.value.file == str(stored)


def test_results_do_not_depend_on_the_test_file_named_in_training(tmp_path, vectors):
    keys = {"dev_dir": str(SAMPLE / "test.bioes")}
    for name in ("with", "without"):
        test = {"test_dir": str(SAMPLE / "train.bioes")} if name == "with" else {}
        train(tmp_path / name, vectors, **keys, **test)
    first, second = (
        (tmp_path / name / "model" / "model.safetensors").read_bytes()
        for name in ("with", "without")
    )
    assert first == second


def test_a_vector_file_of_another_width_is_refused(tmp_path, vectors):
    train(tmp_path, vectors)
    other = tmp_path / "other.txt"
    other.write_text("Anna 1 2 3\nsaw 4 5 6\n")
    with pytest.raises(InputError, match=r"other\.txt: .*width 3, but the model's .*width 8"):
        Tagger.load(tmp_path / "model", word_emb_dir=str(other))
    vectors.write_text(other.read_text())
    with pytest.raises(InputError, match=r"vectors\.txt: .*width 3"):
        Tagger.load(tmp_path / "model")


def test_a_vector_file_for_a_model_without_vectors_is_refused(trained, vectors, tmp_path):
    with pytest.raises(ConfigError, match="the model has no pretrained vectors"):
        Tagger.load(trained, word_emb_dir=str(vectors))
    config = tmp_path / "decode.config"
    config.write_text(f"status=decode\nword_emb_dir={vectors}\n")
    decode = load_config(config, check_files=False)
    with pytest.raises(ConfigError, match=r"decode\.config:2: word_emb_dir="):
        load_predictor(trained, decode)
