"""Every line of the contract that speaks of an error, met at the command line as a user meets it.

Status 2, nothing on standard output, and the last line on standard error says file, line and what
would be right. Details of each are tested beside the code.
"""

import re
import shutil
from pathlib import Path

import pytest

from ncrf import Tagger
from ncrf.errors import InputError
from ncrf.model import manifest
from tests.conftest import SAMPLE, small_keys
from tests.fuzz.attempts import run

BIO = "Anna B-PER\nmet O\n\nBo B-PER\n"
TRAIN = "train_dir=train\nmodel_dir=model\n"


def refused(arguments, message):
    """The last line of a command that is refused; it fits the pattern."""
    status, out, err = run(arguments)
    last = err.splitlines()[-1]
    assert (status, out) == (2, ""), err
    assert re.search(f"^ncrf: {message}", last), last
    assert len([line for line in err.splitlines() if line.startswith("ncrf: ")]) == 1
    return last


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty folder to work in, with a small corpus."""
    monkeypatch.chdir(tmp_path)
    Path("train").write_text(BIO)


@pytest.fixture(scope="module")
def with_features(tmp_path_factory):
    folder = tmp_path_factory.mktemp("features") / "model"
    keys = {"train_dir": str(SAMPLE / "dev.cappos.bioes"), "dev_dir": None, "iteration": 1}
    Tagger.train(small_keys(folder, **keys))
    return folder


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed=1\nnonsense\n", r"my\.config:2: 'nonsense' is no setting \(key=value\)"),
        ("use_crf=perhaps\n", r"my\.config:1: use_crf='perhaps' is not a boolean \(true/false"),
        ("use_crf=2\n", r"my\.config:1: use_crf='2' is not a boolean"),
        ("\nitteration=5\n", r"my\.config:2: unknown key 'itteration' .*iteration"),
        ("x_transformer=True\n", r"my\.config:1: x_transformer='True' is not .*None or False"),
        ("word_finetune=1\n", r"my\.config:1: word_finetune='1' is not .*None or False"),
        ("word_seq_feature=LSTN\n", r"my\.config:1: word_seq_feature='LSTN' .*nearest: LSTM"),
        ("iteration=many\n", r"my\.config:1: iteration='many' is not a whole number"),
        ("plugins=no_such\n", r"my\.config:1: the plugin 'no_such' cannot be imported"),
        ("column_separator=comma\n", r"my\.config:1: column_separator='comma' .*auto, tab, space"),
        ("file_format=xml\n", r"my\.config:1: file_format='xml' .*columns, conllu"),
        ("label_column=lemma\n", r"my\.config:1: label_column='lemma' .*upos, xpos, feats"),
        ("columns=label,[POS]\n", r"my\.config:1: columns='label,\[POS\]' has no word column"),
        ("input_scheme=IOB9\n", r"my\.config:1: input_scheme='IOB9' .*IOB1, IOB2, BIOES"),
        ("feature=[a] from=nowhere\n", r"my\.config:1: .*from='nowhere' .*capitalization"),
        (f"{TRAIN}hidden_dim=21\n", r"my\.config:3: hidden_dim=21 is odd.*even value is 22"),
        ("train_dir=train\n", r"my\.config.* model_dir is not set \(model_dir=PATH\)"),
        ("model_dir=model\n", r"my\.config.* train_dir is not set \(train_dir=PATH\)"),
        ("train_dir=no\nmodel_dir=m\n", r"my\.config:1: train_dir: 'no' does not exist"),
        (
            f"{TRAIN}dset_dir=other\n",
            r"my\.config:3: dset_dir names the folder 'other', but model_dir names 'model'",
        ),
        (
            f"{TRAIN}savedset=other.dset\n",
            r"my\.config:3: dset_dir names the folder 'other', but model_dir names 'model'",
        ),
        (f"{TRAIN}resume=1\noverwrite=1\n", r"my\.config:4: resume=True and overwrite=True"),
        ("status=decode\nraw_dir=train\n", r"my\.config:1: .* load_model_dir is not set"),
        ("status=decode\nload_model_dir=train\nraw_dir=train\n", r"my\.config:2: .*is a file"),
        ("train_dir=-\ndev_dir=-\nmodel_dir=m\n", r"my\.config:2: .*both standard input"),
    ],
)
def test_a_config(text, message):
    Path("my.config").write_text(text)
    refused(["--config", "my.config"], message)
    assert sorted(path.name for path in Path().iterdir()) == ["my.config", "train"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:\n  b:\n    seed: 1\n", r"my\.yaml:2: the section 'b' stands inside another"),
        ("- seed\n", r"my\.yaml:1: holds no mapping"),
        ("seed: [\n", r"my\.yaml:2: is not YAML"),
    ],
)
def test_a_config_in_yaml(text, message):
    Path("my.yaml").write_text(text)
    refused(["--config", "my.yaml"], message)


def test_what_was_detected_may_stand_before_the_error():
    Path("train").write_text("Anna B-PER\nmet I-LOC\n")
    Path("my.config").write_text(f"{TRAIN}constraints=all\niteration=1\n")
    status, _, err = run(["--config", "my.config"])
    assert status == 2 and "label scheme: IOB2 (detected)" in err.splitlines()[:-1]
    assert re.match(r"ncrf: train:2: constraints=all forbids I-LOC", err.splitlines()[-1])


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hidden_dim", "30", "hidden_dim=30 does not fit the model, which has hidden_dim=20"),
        ("use_crf", "False", "use_crf=False does not fit the model, which has use_crf=True"),
        ("char_seq_feature", "GRU", "char_seq_feature=GRU does not fit .*char_seq_feature=CNN"),
        ("tag_scheme", "BIO", "tag_scheme=BIO does not fit the model, which has tag_scheme=keep"),
        ("feature", "[POS] emb_size=5", r"feature \[POS\] does not fit the model, which has none"),
    ],
)
def test_a_key_that_shapes_the_model_and_differs(trained, key, value, message):
    Path("my.config").write_text(f"raw_dir=train\nload_model_dir={trained}\n{key}={value}\n")
    refused(["--config", "my.config"], rf"my\.config:3: {message}")


def test_a_model_that_names_a_plugin(trained):
    shutil.copytree(trained, "model")
    text = Path("model/config.yaml").read_text() + "plugins: this\n"
    manifest.update(Path("model"), {"config.yaml": text.encode()})
    line = text.count("\n")
    message = rf"model/config\.yaml:{line}: a model may not name plugins .*pass plugins="
    refused(["decode", "--raw", "train", "--loadmodel", "model"], message)
    refused(["info", "model"], message)


@pytest.mark.parametrize(
    ("text", "keys", "message"),
    [
        ("Anna N B-PER\n", [], r"train:1: column 2 .*columns=word,-,label"),
        ("Anna B_PER\nmet O\n", [], r"train:1: labels look like 'B_PER'.* \(label_delimiter=_\)"),
        ("Anna B-PER\nmet\n", [], r"train:2: 1 column found, 'met', expected 2"),
        ("Anna B-PER\nmet I-LOC\n", ["--constraints=all"], r"train:2: constraints=all forbids"),
        ("Anna X\n", ["--input_scheme=IOB2"], r"train: input_scheme=IOB2, but X is none of its"),
        ("Anna B-PER\n", ["--feature=[POS]"], r".*feature=\[POS\]: train has no such column"),
        ("Anna B-PER|B-LOC\nmet O\n", ["--partial_labels=sets"], r"train:1: .*has B-\w+ alone"),
        ("Anna ?\n", [], r"train: no word has a label that is known"),
        ("", [], r"train: holds no sentence"),
        ("good film\n", ["--sentence_classification=1"], r"train:1: there is no label .*\|\|\|"),
        ("Anna\tO\n", ["--file_format=conllu"], r"train:1: 2 columns found, expected 10"),
    ],
)
def test_a_corpus(text, keys, message):
    Path("train").write_text(text)
    refused(["train", "--train", "train", "--model_dir", "model", *keys], message)
    assert [path.name for path in Path().iterdir()] == ["train"]


def test_a_feature_that_the_model_needs_and_the_file_lacks(with_features):
    arguments = ["decode", "--raw", "train", "--loadmodel", with_features]
    refused(arguments, r"train:1: the feature column \[\w+\] is missing")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v", b"Anna 1 2\nxyz 1\n", r"v:2: 1 numbers? found, expected 2"),
        ("v", b"Anna 1 2\nxyz 1 nan\n", r"v:2: nan is not a finite"),
        ("v", b"Anna 1 2\nxyz 1 1e999\n", r"v:2: inf is not a finite"),
        ("v.kv", b"Anna 1 2\n", r"v\.kv: is a pickle, which is never loaded .*save_word2vec_"),
    ],
)
def test_a_vector_file(name, content, message):
    """The rows at fault are of words that the corpus does not have."""
    Path(name).write_bytes(content)
    arguments = ["train", "--train", "train", "--model_dir", "model", "--word_emb_dir", name]
    refused(arguments, message)
    assert not Path("model").exists()


class TestTheModelFolder:
    """The table of section 5."""

    ARGUMENTS = ("train", "--train", "train", "--model_dir", "model", "--iteration", "1")

    def contents(self):
        return {path: path.read_bytes() for path in Path("model").rglob("*") if path.is_file()}

    def test_unfinished(self):
        Path("model/training").mkdir(parents=True)
        message = r"model: holds an unfinished training \(resume=True .* overwrite=True"
        refused(self.ARGUMENTS, message)
        assert [path.name for path in Path("model").rglob("*")] == ["training"]

    def test_finished(self, trained):
        shutil.copytree(trained, "model")
        before = self.contents()
        refused(self.ARGUMENTS, r"model: holds a finished model \(overwrite=True")
        refused([*self.ARGUMENTS, "--resume"], r"model: holds a finished model \(overwrite=True")
        assert self.contents() == before

    @pytest.mark.parametrize("option", [[], ["--overwrite"], ["--resume"]])
    def test_anything_else(self, option):
        Path("model").mkdir()
        Path("model/thesis.tex").write_text("years of work")
        refused([*self.ARGUMENTS, *option], r"model: is not a model folder and not empty")
        assert self.contents() == {Path("model/thesis.tex"): b"years of work"}


@pytest.mark.parametrize("output", ["train", "./train", "a/../train", "link"])
def test_input_and_output_are_the_same_file(trained, output):
    Path("a").mkdir()
    Path("link").symlink_to("train")
    arguments = ["decode", "--raw", "train", "--loadmodel", trained, "--output", output]
    refused(arguments, r"command line: decode_dir and raw_dir are the same file")
    refused(["convert", "--to", "BIOES", "train", output], rf"{output}: is the input itself")
    assert Path("train").read_text() == BIO


def test_no_labeling_is_possible():
    """A model all of whose labels go on with a span that none of them can begin."""
    Path("train").write_text("Anna I-PER\nmet I-PER\n")
    Path("raw").write_text("\nAnna\nmet\n")
    keys = ["--input_scheme", "IOB2", "--iteration", "1"]
    train = ["train", "--train", "train", "--model_dir", "model", *keys]
    refused([*train, "--constraints", "all"], r"train:1: constraints=all forbids I-PER")
    assert run([*train, "--constraints", "decode"])[0] == 0
    message = r"raw:2: no labeling is possible \(constraints=none\)"
    refused(["decode", "--raw", "raw", "--loadmodel", "model"], message)


def test_forced_labels_that_the_scheme_forbids(trained):
    Path("raw").write_text("Anna E-PER\nmet ?\n")
    arguments = ["decode", "--raw", "raw", "--loadmodel", trained, "--forced_labels"]
    refused(arguments, r"raw:1: no labeling is possible")


def test_words_that_differ_between_gold_and_predicted():
    Path("out").write_text(BIO.replace("met", "left"))
    refused(["evaluate", "train", "out"], r"out:2: 'left' where train:2 has 'met'")


@pytest.mark.parametrize("command", ["evaluate", "convert", "info", "check"])
def test_arguments_that_are_missing_have_status_2(command):
    try:
        status, _, err = run([command])
    except SystemExit as end:  # of argparse, which has printed the usage
        status, err = end.code, ""
    assert status == 2 and "Traceback" not in err


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (["Anna left"], r"sentence 0 is a string \(split it into a list of words\)"),
        ("Anna left", r"the sentences are one string"),
        ([["Anna", ""]], r"sentence 0, word 1: '' is no word"),
        ([["Anna"], [7]], r"sentence 1, word 0: 7 is no word"),
        ([7], r"sentence 0 is 7"),
        ([{"tokens": ["Anna"]}], r"sentence 0 has no 'words'"),
    ],
)
def test_what_python_gives(tagger, sentences, message):
    for predict in (tagger.predict, lambda given: list(tagger.stream(given))):
        with pytest.raises(InputError, match=message):
            predict(sentences)


def test_a_feature_that_python_does_not_give(with_features):
    tagger = Tagger.load(with_features)
    with pytest.raises(InputError, match="sentence 0: feature 'Cap' is missing"):
        tagger.predict([["Anna"]])
    with pytest.raises(InputError, match="sentence 0: feature 'Cap' has 1 values"):
        tagger.predict([{"words": ["Anna", "met"], "Cap": ["x"], "POS": ["x", "y"]}])
