"""Labels known in part: in training any labeling that agrees, in decoding kept as given."""

import itertools
import math

import numpy as np
import pytest

from ncrf import Tagger
from ncrf.cli import main
from ncrf.data.alphabet import Alphabet
from ncrf.data.partial import is_partial, possible_labels
from ncrf.errors import InputError
from tests.conftest import SAMPLE, small_keys

LABELS = Alphabet(["B-PER", "I-PER", "O"], [1, 1, 1], special=())


def test_what_a_label_stands_for():
    strings = ["O", "?", "B-PER|O", "B-LOC|I-PER", "B-LOC"]
    assert possible_labels(strings, LABELS).tolist() == [
        [False, False, True],
        [True, True, True],
        [True, False, True],
        [False, True, False],
        [False, False, False],
    ]
    for mode, partial in {"none": "", "unknown": "?", "sets": "?|"}.items():
        assert is_partial("?", mode) == ("?" in partial)
        assert is_partial("A|B", mode) == ("|" in partial)
        assert not is_partial("O", mode)


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "train.bio"
    path.write_text(
        "Anna B-PER\nLind ?\nleft O\n\nBo B-PER|O\nleft O\n\nin O\nBo B-PER\nLind I-PER\n"
    )
    return path


def train(corpus, tmp_path, **keys):
    keys = {"train_dir": str(corpus), "dev_dir": None, "iteration": 1, "dropout": 0, **keys}
    return Tagger.train(small_keys(tmp_path / "model", **keys))


def test_the_loss_is_that_of_all_labelings_that_agree(corpus, tmp_path, monkeypatch):
    """The loss of the untrained network, against the sum over the labelings it was given."""
    losses = []
    from ncrf.model.labeler import Labeler

    loss = Labeler.loss
    monkeypatch.setattr(Labeler, "loss", lambda s, *x: losses.append(loss(s, *x)) or losses[-1])
    keys = {"partial_labels": "sets", "learning_rate": 1e-12, "unk_singleton": 0, "batch_size": 1}
    tagger = train(corpus, tmp_path, constraints="none", **keys)
    assert tagger.vocabulary.labels.strings == ("B-PER", "O", "I-PER")
    given = [
        (["Anna", "Lind", "left"], [["B-PER"], ["B-PER", "O", "I-PER"], ["O"]]),
        (["Bo", "left"], [["B-PER", "O"], ["O"]]),
        (["in", "Bo", "Lind"], [["O"], ["B-PER"], ["I-PER"]]),
    ]
    expected = []
    for words, possible in given:
        (prediction,) = tagger.predict([words], nbest=1000)
        by_labels = {tuple(x.labels): x.probability for x in prediction.nbest}
        expected.append(-math.log(math.fsum(by_labels[p] for p in itertools.product(*possible))))
    assert sorted(x.item() for x in losses) == pytest.approx(sorted(expected), abs=1e-4)


def test_none_takes_every_label_as_it_stands(corpus, tmp_path):
    keys = {"input_scheme": "plain", "partial_labels": "none"}
    tagger = train(corpus, tmp_path, **keys)
    assert {"?", "B-PER|O"} <= set(tagger.vocabulary.labels.strings)


def test_a_tag_for_question_marks_is_a_tag(tmp_path):
    """Where labels mark no spans, ``?`` is a label like any other unless the config says so."""
    corpus = tmp_path / "pos"
    corpus.write_text("who PRON\nis VERB\n? ?\n\nhe PRON\ncame VERB\n. .\n\n" * 4)
    keys = {"train_dir": str(corpus), "dev_dir": None, "iteration": 1}
    tagger = Tagger.train(small_keys(tmp_path / "model", **keys))
    assert "?" in tagger.vocabulary.labels
    keys["partial_labels"] = "unknown"
    tagger = Tagger.train(small_keys(tmp_path / "model", overwrite=True, **keys))
    assert "?" not in tagger.vocabulary.labels


def test_a_set_names_labels_that_are_known(corpus, tmp_path):
    corpus.write_text(corpus.read_text().replace("B-PER|O", "B-PER|I-LOC"))
    with pytest.raises(InputError, match=rf"^{corpus}:5: B-PER\|I-LOC: no word .* I-LOC alone"):
        train(corpus, tmp_path, partial_labels="sets")


def test_another_scheme_cannot_be_asked_for(corpus, tmp_path):
    corpus.write_text(corpus.read_text().replace("B-PER|O", "O"))
    with pytest.raises(InputError, match="known in part cannot be converted from IOB2 to BIOES"):
        train(corpus, tmp_path, tag_scheme="BIOES")


class TestForced:
    SENTENCE = ("Anna", "met", "Bo", "Lind", ".")

    def test_given_labels_are_kept_and_probabilities_are_conditional(self, trained, tagger):
        forced = Tagger.load(trained, forced_labels=True)
        labels = ["?", "S-ORG", "?", "?", "O"]
        given = {"words": self.SENTENCE, "labels": labels}
        (prediction,) = forced.predict([given], nbest=5)
        (free,) = tagger.predict([self.SENTENCE], nbest=5000)
        agreeing = [
            x
            for x in free.nbest
            if all(wanted in ("?", found) for wanted, found in zip(labels, x.labels, strict=True))
        ]
        total = math.fsum(x.probability for x in agreeing)
        for found, expected in zip(prediction.nbest, agreeing, strict=False):
            assert found.labels == expected.labels
            assert found.probability == pytest.approx(expected.probability / total, abs=1e-4)
        assert any(span.label == "ORG" and span.start == 1 for span in prediction.spans)

    def test_nothing_given_is_nothing_forced(self, trained, tagger):
        forced = Tagger.load(trained, forced_labels=True)
        (one,), (other,) = forced.predict([self.SENTENCE]), tagger.predict([self.SENTENCE])
        assert one.labels == other.labels
        assert one.probability == pytest.approx(other.probability, abs=1e-6)

    def test_from_a_file(self, trained, tmp_path, capsys):
        raw = tmp_path / "raw"
        raw.write_text("Anna S-LOC\nleft ?\n\n")
        command = ["decode", "--raw", str(raw), "--loadmodel", str(trained), "--threads", "1"]
        assert main([*command, "--forced_labels", "true"]) == 0
        assert capsys.readouterr().out.splitlines()[0] == "Anna S-LOC"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("Anna ?\nleft S-XYZ\n", "raw:2: forced_labels=True: S-XYZ is no label of the model"),
            ("Anna I-PER\nleft ?\n", "raw:1: no labeling is possible"),
            ("Anna\n", "there is no label column"),
        ],
    )
    def test_what_cannot_be_kept_is_an_error(self, trained, tmp_path, capsys, text, message):
        raw = tmp_path / "raw"
        raw.write_text(text)
        command = ["decode", "--raw", str(raw), "--loadmodel", str(trained), "--threads", "1"]
        assert main([*command, "--forced_labels", "true"]) == 2
        assert message in capsys.readouterr().err.splitlines()[-1]

    @pytest.mark.parametrize("given", ["I-PER", "E-PER", "B-PER"])
    def test_given_labels_are_those_of_the_model_not_of_its_corpus(self, tmp_path, given):
        """A corpus in IOB1 or BIO, a model in BIOES: nothing is converted on the way in."""
        corpus = tmp_path / "train"
        corpus.write_text("Anna I-PER\nLee I-PER\nLind I-PER\nleft O\n\nBo I-PER\nleft O\n\n" * 2)
        keys = {"train_dir": str(corpus), "dev_dir": None, "iteration": 1, "tag_scheme": "BIOES"}
        Tagger.train(small_keys(tmp_path / "model", **keys))
        forced = Tagger.load(tmp_path / "model", forced_labels=True, output_scheme="BIOES")
        sentence = {"words": ["x", "Lee", "Lind", "x"], "labels": ["?", given, "?", "?"]}
        for labeling in forced.predict([sentence], nbest=20)[0].nbest:
            assert labeling.labels[1] == given

    def test_labels_of_another_length(self, trained):
        forced = Tagger.load(trained, forced_labels=True)
        with pytest.raises(InputError, match="sentence 0: 1 labels for 2 words"):
            forced.predict([{"words": ["a", "b"], "labels": ["O"]}])


def test_partial_labels_on_the_sample_data_still_learn(tmp_path):
    """A third of the labels are withheld; the rest teaches enough."""
    rng = np.random.default_rng(0)
    lines = (SAMPLE / "train.bioes").read_text(encoding="utf-8").splitlines()
    hidden = [line.split(" ")[0] + " ?" if line and rng.random() < 0.33 else line for line in lines]
    corpus = tmp_path / "train"
    corpus.write_text("\n".join(hidden) + "\n", encoding="utf-8")
    keys = {"optimizer": "Adam", "learning_rate": 0.01, "iteration": 4, "dropout": 0.2}
    tagger = Tagger.train(small_keys(tmp_path / "model", train_dir=str(corpus), **keys))
    assert tagger.vocabulary.scheme.target == "BIOES" and "?" not in tagger.vocabulary.labels
    assert tagger.evaluate(SAMPLE / "test.bioes").f1 > 0.5
