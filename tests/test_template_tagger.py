"""Templates from config to prediction: the classical CRF, and templates beside a network."""

import itertools
import json
import math

import numpy as np
import pytest
import torch

from ncrf import Tagger
from ncrf.config import load_config
from ncrf.data.batch import make_batch
from ncrf.errors import ConfigError, InputError
from ncrf.model import folder
from ncrf.train import corpus_training
from ncrf.train.template_objective import TemplateObjective
from tests.conftest import SAMPLE
from tests.template_models import classical_keys, network_keys, sentences

TEST = SAMPLE / "test.cappos.bioes"


@pytest.fixture(scope="module")
def classical(tmp_path_factory):
    place = tmp_path_factory.mktemp("classical")
    return Tagger.train(classical_keys(place, iteration=60, dev_dir=str(TEST)))


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    return Tagger.train(network_keys(tmp_path_factory.mktemp("joined"), learning_rate=0.05))


def gold_log_probability(tagger, path):
    """log P of a file's labels, summed, through batches; and its words."""
    from ncrf.data import corpora

    corpus = corpora.load_corpus(
        tagger.config, str(path), features=tuple(tagger.vocabulary.features)
    )
    dataset = tagger.predictor.encode(corpus)
    tagger.predictor.labeler.eval()
    with torch.no_grad():
        batch = make_batch(dataset, np.arange(dataset.num_sentences))
        return -float(tagger.predictor.labeler.loss(batch)), dataset


class TestClassical:
    def test_it_has_no_network(self, classical):
        labeler = classical.predictor.labeler
        names = {name.split(".")[0] for name, _ in labeler.named_parameters()}
        assert names == {"templates", "inference"}
        assert not classical.config.words.use_word_emb and not classical.config.chars.use_char

    def test_it_learns(self, classical):
        assert classical.evaluate(TEST).f1 > 0.6

    def test_the_batches_likelihood_is_the_objective(self, classical):
        """Through batches, padding and the CRF layer: the same as the corpus objective."""
        total, dataset = gold_log_probability(classical, SAMPLE / "dev.cappos.bioes")
        labeler, index = classical.predictor.labeler, classical.vocabulary.templates.index
        transitions = labeler.inference.crf.transitions.detach().reshape(-1)
        weights = torch.cat(
            [
                labeler.templates.state_weights,
                transitions[torch.from_numpy(index.transition_pairs)],
                labeler.templates.bigram_weights,
            ]
        )
        objective = TemplateObjective(
            index, dataset.attributes, dataset.labels, dtype=torch.float64
        )
        value, _ = objective(weights.detach().double().numpy())
        assert total == pytest.approx(-value, rel=1e-5)

    def test_the_history_tells_of_every_iteration(self, classical):
        path = classical.config.files.model_dir
        with open(f"{path}/history.jsonl", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        assert [row["epoch"] for row in rows] == list(range(1, len(rows) + 1))
        rises = [b["loss"] - a["loss"] for a, b in itertools.pairwise(rows)]
        assert max(rises) < 1e-9
        assert rows[9]["dev"] and rows[-1]["dev"] and not rows[10]["dev"]
        assert all(row["gradient_norm"] > 0 and row["active_features"] > 0 for row in rows)

    def test_the_folder_needs_no_template_file(self, classical, tmp_path):
        keys = classical_keys(tmp_path)
        tagger = Tagger.train(keys)
        (tmp_path / "template").unlink()
        loaded = Tagger.load(keys["model_dir"])
        assert loaded.predict(sentences(), nbest=3) == tagger.predict(sentences(), nbest=3)
        files = {file.name for file in (tmp_path / "model").iterdir()}
        assert files == {
            *("config.yaml", "alphabets.json", "templates.json", "templates.safetensors"),
            *("model.safetensors", "history.jsonl", "manifest.json"),
        }

    def test_sgd_keeps_to_the_same_model(self, tmp_path):
        keys = classical_keys(tmp_path, optimizer="SGD", learning_rate=0.05)
        crf = Tagger.train(keys).predictor.labeler.inference.crf
        index = Tagger.load(keys["model_dir"]).vocabulary.templates.index
        assert not crf.start_transitions.any() and not crf.end_transitions.any()
        learned = np.flatnonzero(crf.transitions.detach().numpy().reshape(-1))
        assert set(learned) <= set(index.transition_pairs) and len(learned)


class TestLearners:
    @pytest.mark.parametrize("name", ["IIS-S", "IIS-T"])
    def test_iterative_scaling_rises_towards_the_optimum(self, tmp_path, name):
        rows = history(tmp_path, classical_keys(tmp_path, optimizer=name, iteration=6))
        values = [row["log_likelihood"] for row in rows]
        assert values == sorted(values) and values[-1] < 0

    @pytest.mark.parametrize("name", ["perceptron", "PA"])
    def test_learners_by_sentence(self, tmp_path, name):
        tagger = Tagger.train(classical_keys(tmp_path, optimizer=name, iteration=8))
        assert tagger.evaluate(SAMPLE / "dev.cappos.bioes").f1 > 0.95

    def test_l1_drops_features(self, tmp_path):
        many = Tagger.train(classical_keys(tmp_path / "a", iteration=20))
        few = Tagger.train(classical_keys(tmp_path / "b", iteration=20, l1=1.0, c2=0.0))
        counts = [t.vocabulary.templates.index.num_features for t in (many, few)]
        assert counts[1] < counts[0] / 2
        weights = few.predictor.labeler.templates.state_weights
        assert len(weights) and bool((weights != 0).all())
        loaded = Tagger.load(tmp_path / "b" / "model")
        assert loaded.predict(sentences(), nbest=2) == few.predict(sentences(), nbest=2)

    @pytest.mark.parametrize("name", ["LBFGS", "IIS-T", "PA"])
    def test_resumed_equals_unbroken(self, tmp_path, monkeypatch, name):
        keys = classical_keys(tmp_path / "whole", optimizer=name, iteration=6, l1=0.1)
        Tagger.train(keys)
        note = corpus_training.CorpusTrainer._note

        def stopped(self, record, learner):
            if record.number == 4:
                raise KeyboardInterrupt
            note(self, record, learner)
            self._write_state()

        broken = classical_keys(tmp_path / "broken", optimizer=name, iteration=6, l1=0.1)
        monkeypatch.setattr(corpus_training.CorpusTrainer, "_note", stopped)
        with pytest.raises(KeyboardInterrupt):
            Tagger.train(broken)
        monkeypatch.undo()
        Tagger.train({**broken, "resume": True})
        one, two = (tmp_path / place / "model" for place in ("whole", "broken"))
        for file in ("model.safetensors", "templates.json", "templates.safetensors"):
            assert (one / file).read_bytes() == (two / file).read_bytes()


def history(place, keys):
    Tagger.train(keys)
    text = (place / "model" / "history.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


class TestJoined:
    def test_both_parts_learn(self, joined):
        labeler = joined.predictor.labeler
        assert bool(labeler.templates.state_weights.any())
        assert bool(labeler.templates.bigram_weights.any())
        assert labeler.projection is not None and labeler.word_layer is not None

    def test_state_round_trip(self, joined):
        loaded = Tagger.load(joined.config.files.model_dir)
        assert loaded.predict(sentences(), nbest=3, marginals=True) == joined.predict(
            sentences(), nbest=3, marginals=True
        )

    def test_gradient_by_finite_differences(self, joined):
        labeler = joined.predictor.labeler
        _, dataset = gold_log_probability(joined, TEST)
        batch = make_batch(dataset, np.arange(4))
        labeler.double().eval()
        try:
            for name in ("state_weights", "bigram_weights"):
                weights = getattr(labeler.templates, name)
                (gradient,) = torch.autograd.grad(labeler.loss(batch), weights)
                for place in gradient.abs().topk(3).indices.tolist():
                    around = []
                    for step in (1e-5, -1e-5):
                        with torch.no_grad():
                            weights[place] += step
                            around.append(float(labeler.loss(batch)))
                            weights[place] -= step
                    slope = (around[0] - around[1]) / 2e-5
                    assert float(gradient[place]) == pytest.approx(slope, rel=1e-4)
        finally:
            labeler.float()


@pytest.mark.parametrize("kind", ["classical", "joined"])
class TestDecode:
    def test_alone_or_among_others(self, kind, request):
        tagger = request.getfixturevalue(kind)
        short, single = sentences()
        long = {name: values * 7 for name, values in short.items()}
        given = [single, long, short]
        together = tagger.predict(given, nbest=2, marginals=True)
        for sentence, found in zip(given, together, strict=True):
            (alone,) = tagger.predict([sentence], nbest=2, marginals=True)
            assert alone.labels == found.labels
            assert alone.probability == pytest.approx(found.probability, rel=1e-4)
            assert alone.marginals == pytest.approx(found.marginals, rel=1e-4)

    def test_all_labelings_sum_to_one(self, kind, request):
        tagger = request.getfixturevalue(kind)
        short = {name: values[:2] for name, values in sentences()[0].items()}
        (found,) = tagger.predict([short], nbest=1000)
        assert math.fsum(x.probability for x in found.nbest) == pytest.approx(1, abs=1e-5)
        for span in found.spans:
            assert 0 < span.probability <= 1 + 1e-6


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        ("B\n", {"optimizer": "LBFGS"}),
        ("B00:%x[0,0]\n", {"optimizer": "SGD"}),
        ("B\n", {"optimizer": "SGD", "word_seq_feature": "LSTM", "hidden_dim": 4}),
        ("U\n", {"optimizer": "IIS-T"}),
    ],
)
def test_templates_of_one_kind_alone(lines, keys, tmp_path):
    make = network_keys if "hidden_dim" in keys else classical_keys
    keys = make(tmp_path, iteration=1, **keys)
    (tmp_path / "template").write_text(lines)
    tagger = Tagger.train(keys)
    found = Tagger.load(keys["model_dir"]).predict(sentences(), nbest=2)
    assert [len(prediction.nbest) for prediction in found] == [2, 2]
    assert found == tagger.predict(sentences(), nbest=2)


class TestErrors:
    def test_a_column_that_there_is_not(self, tmp_path):
        keys = classical_keys(tmp_path)
        (tmp_path / "template").write_text("U00:%x[0,0]\nU01:%x[0,3]\n")
        with pytest.raises(InputError, match=r"template:2: column 3 .*0 \(word\), 1 \(\[Cap\]\)"):
            Tagger.train(keys)

    def test_a_skipped_column_keeps_its_number(self, tmp_path):
        keys = classical_keys(tmp_path, columns="word,-,[POS],label")
        (tmp_path / "template").write_text("U00:%x[0,2]\n")
        Tagger.train(keys)
        (tmp_path / "template").write_text("U00:%x[0,2]\nU01:%x[0,1]\n")
        with pytest.raises(InputError, match=r"template:2: column 1 .* skipped"):
            Tagger.train({**keys, "overwrite": True})

    @pytest.mark.parametrize("name", ["LBFGS", "IIS-S", "perceptron"])
    def test_a_network_and_a_learner_of_the_whole_corpus(self, tmp_path, name):
        with pytest.raises(ConfigError, match=f"optimizer={name} learns the classical CRF alone"):
            load_config(network_keys(tmp_path, optimizer=name))
        with pytest.raises(ConfigError, match=f"optimizer={name} needs feature templates"):
            load_config({**network_keys(tmp_path, optimizer=name), "template_file": None})

    def test_iterative_scaling_and_negative_values(self, tmp_path):
        keys = classical_keys(tmp_path, optimizer="IIS-S", columns="word,[value],label")
        corpus = tmp_path / "corpus"
        corpus.write_text("a x:-0.5 A\nb x:2 B\n\n")
        (tmp_path / "template").write_text("U00:%v[0,1]\nB\n")
        with pytest.raises(ConfigError, match="never negative"):
            Tagger.train({**keys, "train_dir": str(corpus)})

    def test_a_damaged_folder(self, tmp_path):
        keys = classical_keys(tmp_path)
        Tagger.train(keys)
        path = tmp_path / "model" / folder.TEMPLATES
        path.write_text(path.read_text()[:-2])
        with pytest.raises(InputError, match=r"templates\.json: is damaged"):
            Tagger.load(keys["model_dir"])
        path.unlink()
        with pytest.raises(InputError, match=r"templates\.json: is missing"):
            Tagger.load(keys["model_dir"])
