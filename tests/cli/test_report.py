"""``ncrf report`` and `Tagger.analyze`: the numbers of evaluation, and what stands around them."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from ncrf import Tagger
from ncrf.cli import main
from ncrf.config import load_config
from ncrf.data.columns import read_columns
from ncrf.data.conversion import convert_file
from ncrf.data.labels import spans
from ncrf.errors import InputError
from tests.conftest import SAMPLE, small_keys

TEST = SAMPLE / "test.bioes"


def run(*arguments, capsys):
    """Exit status, standard output, standard error."""
    status = main(["report", *map(str, arguments), "--threads", "1"])
    return status, *capsys.readouterr()


@pytest.fixture(scope="module")
def with_vectors(tmp_path_factory):
    """A model with a vector file, and the copy of that file."""
    folder = tmp_path_factory.mktemp("with_vectors")
    vectors = shutil.copy(SAMPLE / "sample.word.emb", folder)
    keys = {"word_emb_dir": vectors, "iteration": 1, "use_char": False, "vector_cache": "off"}
    Tagger.train(small_keys(folder / "model", **keys))
    return folder / "model", vectors


def test_the_numbers_are_those_of_evaluation(trained, tagger, capsys):
    status, out, _ = run(trained, TEST, "--json", capsys=capsys)
    value, score = json.loads(out), tagger.evaluate(TEST)
    assert status == 0 and value["model"] == str(trained)
    for name in ("gold", "predicted", "correct", "tokens", "correct_tokens", "precision", "f1"):
        assert value["score"][name] == getattr(score, name)
    for name, row in score.per_type.items():
        assert value["score"]["per_type"][name]["correct"] == row.correct
    assert value["calibration"]["entities"]["count"] == score.predicted > 0
    assert value["calibration"]["labels"]["right"] == pytest.approx(score.accuracy)


def test_probabilities_are_those_of_predictions(tagger):
    sentences = [b.splitlines() for b in TEST.read_text("utf-8").strip().split("\n\n")]
    words = [[line.split(" ")[0] for line in block] for block in sentences]
    found = tagger.predict(words, marginals=True)
    analysis = tagger.analyze(TEST)
    entities = [span.probability for p in found for span in p.spans]
    labels = [probability for p in found for probability in p.marginals]
    assert analysis.entity_calibration.mean == pytest.approx(sum(entities) / len(entities))
    assert analysis.label_calibration.mean == pytest.approx(sum(labels) / len(labels))


def test_thresholds_are_those_of_the_decoder(trained, capsys):
    status, out, _ = run(trained, TEST, "--json", capsys=capsys)
    table = json.loads(out)["by_threshold"]
    assert status == 0 and list(table) == [f"0.{tenth}" for tenth in range(1, 10)]
    for threshold in ("0.1", "0.3", "0.5", "0.8"):
        score = Tagger.load(trained, decoder="mbr", mbr_threshold=threshold).evaluate(TEST)
        row = table[threshold]
        assert (row["gold"], row["predicted"]) == (score.gold, score.predicted)
        assert (row["correct"], row["f1"]) == (score.correct, pytest.approx(score.f1))
    assert table["0.1"]["predicted"] > table["0.5"]["predicted"] > table["0.9"]["predicted"]
    text = run(trained, TEST, capsys=capsys)[1]
    assert f"\n| 0.3 | {table['0.3']['gold']} | {table['0.3']['predicted']} | " in text
    text = run(trained, TEST, "--constraints", "none", capsys=capsys)[1]
    assert "## Calibration" in text and "By threshold" not in text


def test_a_page_of_markdown(trained, tagger, tmp_path, capsys):
    out = tmp_path / "new" / "report.md"
    assert run(trained, TEST, "--out", out, "--top", 3, capsys=capsys)[:2] == (0, "")
    text = out.read_text("utf-8")
    assert text == tagger.report(TEST, top=3).replace("# Errors on", f"# Errors of `{trained}` on")
    *_, last = re.findall(rf"{TEST}:(\d+) `.*\[\[(.*?)\]\].*`", text)
    line = TEST.read_text("utf-8").splitlines()[int(last[0]) - 1]
    assert line.split()[0] == last[1].split()[0]


def test_an_error_stands_at_its_line(tagger):
    lines = TEST.read_text("utf-8").splitlines()
    for error in tagger.analyze(TEST).frequent:
        first = error.example.words.split()[0]
        assert lines[error.example.line - 1].split()[0] == first


@pytest.mark.parametrize("scheme", ["IOB1", "BIO"])
def test_another_scheme_in_the_file_or_the_training(scheme, trained, tmp_path):
    """Entities are counted alike; labels are in the scheme of the model."""
    config = load_config({}, check_files=False)
    for part in ("dev", "test"):
        convert_file(config, str(SAMPLE / f"{part}.bioes"), str(tmp_path / part), scheme)
    keys = {"train_dir": tmp_path / "dev", "dev_dir": None, "iteration": 1, "use_char": False}
    converted = Tagger.train(small_keys(tmp_path / "model", **keys))
    for tagger, file in ((converted, tmp_path / "test"), (converted, TEST)):
        analysis = tagger.analyze(file)
        assert analysis.score == tagger.evaluate(file)
        assert analysis.label_calibration.right == pytest.approx(analysis.score.accuracy)
        assert set(analysis.confusion.names) == {"LOC", "MISC", "ORG", "PER"}
    loaded = Tagger.load(trained)
    assert loaded.analyze(tmp_path / "test").errors == loaded.analyze(TEST).errors
    other = Tagger.load(trained, output_scheme="BIO")
    assert other.analyze(TEST).label_calibration == loaded.analyze(TEST).label_calibration


def without_digits(word):
    return re.sub("[0-9]", "0", word)


def test_vocabulary_classes(with_vectors, capsys):
    model, vectors = with_vectors
    embedded = {line.split(" ")[0] for line in Path(vectors).read_text("utf-8").splitlines()[1:]}
    train = (SAMPLE / "dev.bioes").read_text("utf-8").splitlines()
    trained = {without_digits(line.split(" ")[0]) for line in train if line}
    counts = Counter()
    for sentence in read_columns(TEST):
        for span in spans(sentence.labels):
            words = sentence.words[span.start : span.end]
            new = any(without_digits(word) not in trained for word in words)
            bare = any(embedded.isdisjoint((word, word.lower())) for word in words)
            counts[("OOBV" if bare else "OOTV") if new else ("OOEV" if bare else "IV")] += 1
    analysis = Tagger.load(model, vector_cache="off").analyze(TEST)
    assert {name: row.support for name, row in analysis.classes.items()} == counts
    assert len(counts) > 2
    status, out, _ = run(model, TEST, "--train", SAMPLE / "dev.bioes", capsys=capsys)
    assert status == 0 and f"Training words: `{SAMPLE / 'dev.bioes'}`, digits turned to 0." in out
    assert f"Vectors: `{vectors}`; found as written or in lower case." in out
    assert "whatever their case" in run(model, TEST, "--ignore_case", capsys=capsys)[1]


def test_vectors_that_are_not_at_hand(with_vectors, tmp_path, capsys):
    model, vectors = with_vectors
    moved = tmp_path / "moved.emb"
    shutil.move(vectors, moved)
    try:
        status, out, _ = run(model, TEST, capsys=capsys)
        assert status == 0
        assert (
            f"Vectors: `{vectors}` is not at hand (--word_emb_dir FILE): IV cannot be told" in out
        )
        assert "| IV or OOEV |" in out and "| OOTV |" not in out
        out = run(model, TEST, "--word_emb_dir", moved, capsys=capsys)[1]
        assert f"Vectors: `{moved}`; found" in out and "| OOTV |" in out
    finally:
        shutil.move(moved, vectors)


def test_a_model_without_vectors(tagger):
    assert "The model has no pretrained vectors" in tagger.report(TEST)


class TestOtherTasks:
    def test_parts_of_speech(self, tmp_path, capsys):
        keys = {"train_dir": SAMPLE / "dev.pos", "dev_dir": SAMPLE / "test.pos", "use_char": False}
        model = tmp_path / "model"
        score = Tagger.train(small_keys(model, **keys)).evaluate(SAMPLE / "test.pos")
        status, out, _ = run(model, SAMPLE / "test.pos", capsys=capsys)
        assert status == 0 and f"{100 * score.accuracy:.2f} %" in out
        assert "## Confusion of labels" in out and "| class | words | right | accuracy |" in out
        assert "Predicted labels" in out and "Predicted entities" not in out
        assert "By threshold" not in out

    def test_classification(self, tmp_path, capsys):
        keys = {
            "train_dir": SAMPLE / "dev.clf",
            "dev_dir": SAMPLE / "test.clf",
            "sentence_classification": True,
        }
        model = tmp_path / "model"
        score = Tagger.train(small_keys(model, **keys)).evaluate(SAMPLE / "test.clf")
        status, out, _ = run(model, SAMPLE / "test.clf", "--json", capsys=capsys)
        value = json.loads(out)
        assert status == 0 and value["task"] == "sentences"
        assert value["score"]["accuracy"] == score.accuracy
        assert value["calibration"]["labels"]["count"] == score.sentences
        assert value["by_vocabulary"]["classes"] == {} == value["by_threshold"]

    def test_words_of_a_segmentation_have_no_threshold(self, tmp_path, capsys):
        file = tmp_path / "words"
        file.write_text("a B\nb E\nc S\n\nd S\n", encoding="utf-8")
        keys = {"train_dir": file, "dev_dir": None, "iteration": 1, "use_char": False}
        Tagger.train(small_keys(tmp_path / "model", **keys))
        out = run(tmp_path / "model", file, capsys=capsys)[1]
        assert "Predicted entities" in out and "By threshold" not in out

    def test_features_and_an_accuracy_for_entities(self, tmp_path):
        """seg=False asks for accuracy, also of labels that mark entities."""
        file = SAMPLE / "dev.cappos.bioes"
        keys = {"train_dir": file, "dev_dir": None, "seg": False, "use_char": False}
        keys["feature"] = ["[Cap] emb_size=5", "[POS] emb_size=5", "[Form] from=capitalization"]
        tagger = Tagger.train(small_keys(tmp_path / "model", **keys))
        analysis = tagger.analyze(file)
        assert analysis.task == "labels" and analysis.score == tagger.evaluate(file)


class TestMistakes:
    @pytest.fixture
    def file(self, tmp_path):
        def write(text):
            (tmp_path / "file").write_text(text)
            return tmp_path / "file"

        return write

    def fails(self, *arguments, capsys):
        status, out, err = run(*arguments, capsys=capsys)
        assert (status, out) == (2, "")
        return err.splitlines()[-1]

    def test_no_labels(self, trained, file, capsys):
        said = self.fails(trained, file("Anna\nleft\n"), capsys=capsys)
        assert re.match(r"ncrf: .*/file:1: 1 column found, 'Anna', expected at least 2", said)

    def test_labels_of_something_else(self, trained, capsys):
        said = self.fails(trained, SAMPLE / "test.pos", capsys=capsys)
        assert re.match(r"ncrf: .*test.pos: not one of its labels \(PROPN, .*\) is one", said)

    def test_a_label_that_training_has_not(self, trained, file, capsys):
        status, out, err = run(trained, file("Anna S-PER\nleft O\nA S-X\nB foo\n"), capsys=capsys)
        assert status == 0
        assert "always wrong: S-X (1), foo (1)." in out
        assert err.count("labels that the model does not have: S-X (1), foo (1)") == 1

    def test_nothing_there(self, trained, file, tmp_path, capsys):
        assert self.fails(trained, file("\n"), capsys=capsys).endswith("file: holds no sentence")
        assert "no such file" in self.fails(trained, tmp_path / "x", capsys=capsys)
        said = self.fails(tmp_path / "x", TEST, capsys=capsys)
        assert re.match(r"ncrf: load_model_dir: '.*/x' does not exist", said)
        said = self.fails(trained, TEST, "--train", tmp_path / "x", capsys=capsys)
        assert "no such file" in said
        said = self.fails(trained, TEST, "--word_emb_dir", tmp_path / "x", capsys=capsys)
        assert re.match(r"ncrf: word_emb_dir: '.*/x' does not exist", said)

    def test_output_over_input(self, trained, file, tmp_path, capsys):
        path = file("Anna S-PER\n")
        said = self.fails(trained, path, "--out", path, capsys=capsys)
        assert said == f"ncrf: --out {path} is the input itself (name another file)"
        said = self.fails(trained, TEST, "--train", path, "--out", path, capsys=capsys)
        assert "is the input itself" in said
        said = self.fails(trained, TEST, "--out", trained / "x.md", capsys=capsys)
        assert "inside the model folder" in said
        assert path.read_text() == "Anna S-PER\n"

    def test_another_shape(self, trained, capsys):
        said = self.fails(trained, TEST, "--columns", "label,word", capsys=capsys)
        assert "not one of its labels" in said

    def test_python(self, tagger):
        with pytest.raises(InputError, match="no such file"):
            tagger.report("nowhere")

    def test_options(self, trained):
        with pytest.raises(SystemExit) as stopped:
            main(["report", str(trained), str(TEST), "--top", "-1"])
        assert stopped.value.code == 2
