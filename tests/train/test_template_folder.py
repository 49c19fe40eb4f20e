"""Templates are files of a model folder like the others: checked, and changed in one step."""

import json
import os
import shutil
from functools import cache, partial

import pytest

from ncrf import Tagger
from ncrf.errors import InputError
from ncrf.model import folder
from ncrf.model.manifest import update
from ncrf.train import checkpoint, folder_lock
from tests.faults import crashes
from tests.template_models import classical_keys, sentences

TEMPLATE_FILES = {"templates.json", "templates.safetensors"}
OTHERS = {"config.yaml", "alphabets.json", "model.safetensors", "history.jsonl", "manifest.json"}


@pytest.fixture(scope="module")
def taggers(tmp_path_factory):
    """Two models with other templates, and one of a network without."""
    place = tmp_path_factory.mktemp("models")
    first, second = (classical_keys(place / name) for name in ("first", "second"))
    (place / "second" / "template").write_text("U07:%x[0,0]\nU08:%x[0,1]\nB\n")
    network = {**classical_keys(place / "third", optimizer="SGD"), "word_seq_feature": "LSTM"}
    network |= {"hidden_dim": 4, "word_emb_dim": 4, "use_char": False, "template_file": None}
    return [Tagger.train({**keys, "iteration": 1}) for keys in (first, second, network)]


@pytest.fixture
def model(taggers, tmp_path):
    taggers[0].save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("name", sorted(TEMPLATE_FILES))
def test_damage_is_named(model, name):
    content = bytearray((model / name).read_bytes())
    content[len(content) // 2] ^= 1
    (model / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{name}: is damaged: its content is not what was writ"):
        Tagger.load(model)
    (model / name).write_bytes(content[:-1])
    with pytest.raises(InputError, match=rf"{name}: is damaged: it has .* were written"):
        Tagger.load(model)
    (model / name).unlink()
    with pytest.raises(InputError, match=rf"{name}: is missing"):
        Tagger.load(model)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"columns": ["word", "[Cap]"]}, "a template takes a column that there is not"),
        ({"columns": ["word", "[Cap]", "[other]"]}, "columns are not those of the model"),
        ({"num_labels": 1}, "do not fit their labels"),
        ({"num_labels": 1000}, "labels are not those of the model"),
        ({"num_labels": 1e300}, "of another type"),
        ({"strings": []}, "a string that there is not"),
    ],
)
def test_what_does_not_belong_together_is_damage(model, change, what):
    content = {**json.loads((model / "templates.json").read_text()), **change}
    update(model, {"templates.json": json.dumps(content).encode()})
    with pytest.raises(InputError, match=rf"templates\.json: is damaged: .*{what}"):
        Tagger.load(model)


def test_a_model_without_templates_takes_the_place_whole(taggers, tmp_path):
    keys = classical_keys(tmp_path, iteration=1)
    Tagger.train(keys)
    assert {path.name for path in (tmp_path / "model").iterdir()} == OTHERS | TEMPLATE_FILES
    config = taggers[2].config.replace(
        model_dir=keys["model_dir"], train_dir=keys["train_dir"], overwrite=True
    )
    Tagger.train(config)
    assert {path.name for path in (tmp_path / "model").iterdir()} == OTHERS
    assert Tagger.load(tmp_path / "model").vocabulary.templates is None


def test_a_foreign_file_stays(model, tmp_path):
    (model / "templates.txt").write_text("mine")
    with pytest.raises(InputError, match="is not a model folder"):
        Tagger.train(classical_keys(tmp_path, overwrite=True))
    assert (model / "templates.txt").read_text() == "mine"
    assert Tagger.load(model).predict(sentences())


@pytest.mark.parametrize(("before", "after"), [(0, 1), (0, 2), (2, 1)])
def test_a_killed_training_leaves_one_model_or_the_other(
    taggers, before, after, tmp_path, monkeypatch
):
    old, new = taggers[before], taggers[after]
    place = tmp_path / "model"
    for name in ("config_text", "parse_model_config"):
        monkeypatch.setattr(folder, name, cache(getattr(folder, name)))
    monkeypatch.setattr(os, "fsync", lambda number: None)
    old.save(place)

    def train():
        check = partial(checkpoint.check_folder, place, resume=False, overwrite=True)
        with folder_lock.held(place, check):
            checkpoint.begin(place, new.config, new.vocabulary)
            weights = new.predictor.labeler.state_dict()
            described = folder.description_files(new.config, new.vocabulary)
            checkpoint.publish(place, weights, [{"epoch": 1}], described)
            checkpoint.finish(place, None)

    found = []
    for snapshot in crashes(train, place, tmp_path / "snapshots", monkeypatch):
        config, vocabulary = folder.read_description(snapshot)
        owner = old if vocabulary == old.vocabulary else new
        assert vocabulary == owner.vocabulary
        assert config.templates.template_file == owner.config.templates.template_file
        weights = owner.predictor.labeler.state_dict()
        stored = folder.read_tensors(snapshot / folder.WEIGHTS)
        assert all((stored[name] == values).all() for name, values in weights.items())
        found.append(owner is new)
        shutil.rmtree(snapshot)
    assert found == sorted(found) and set(found) == {False, True} and len(found) > 30
