"""The runs of a sweep: which there are, and their names."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncrf import load_config
from ncrf.config.readers import read_command_line
from ncrf.errors import ConfigError
from ncrf.train.sweep_grid import OWN_KEYS, plan, row_name
from tests.conftest import SAMPLE


@pytest.fixture
def config(tmp_path, monkeypatch):
    """A config file of the working folder, whose own seed is 7."""
    monkeypatch.chdir(tmp_path)
    lines = [
        f"train_dir={SAMPLE / 'train.bioes'}",
        "model_dir=runs/own",
        "seed=7",
        "overwrite=True",
    ]
    Path("ner.config").write_text("\n".join(lines) + "\n")
    return "ner.config"


def runs(config, *arguments, seeds=None, out="runs"):
    files = [config] if isinstance(config, str) else config
    return plan(files, read_command_line(arguments), seeds, Path(out))


def names(found):
    return [run.name for run in found]


class TestRuns:
    def test_a_config_alone(self, config):
        (run,) = runs(config)
        assert (run.name, run.seed, run.row.name) == ("seed=7", 7, "")
        assert run.model_dir == Path("runs/ner/seed=7") and run.log == Path("runs/ner/seed=7.log")
        assert run.config.files.model_dir == "runs/ner/seed=7"

    def test_all_combinations_and_the_first_seed_of_all_comes_first(self, config):
        found = runs(config, "--hidden_dim", "20,40", "--dropout", "0.1,0.50", seeds="2")
        rows = [f"hidden_dim={h},dropout={d}" for h in (20, 40) for d in (0.1, 0.5)]
        assert names(found) == [f"{row},seed={s}" for s in (7, 8) for row in rows]
        run = found[-1]
        assert (run.config.word_layer.hidden_dim, run.config.network.dropout) == (40, 0.5)
        assert run.settings == {"hidden_dim": 40, "dropout": 0.5} and run.config.run.seed == 8

    def test_what_the_training_is_told_gives_the_same_config(self, config):
        for run in runs(config, "--clip", "None,5", "--seg", "auto,False", seeds="1,2"):
            again = load_config(config, [*run.arguments, f"--model_dir={run.model_dir}"])
            assert again.flat() == run.config.flat()

    @pytest.mark.parametrize(
        ("seeds", "expected"),
        [(None, [7]), ("3", [7, 8, 9]), ("1,2,9", [1, 2, 9]), ("3,", [3]), ("2,2", [2])],
    )
    def test_seeds(self, config, seeds, expected):
        assert [run.seed for run in runs(config, seeds=seeds)] == expected

    def test_seeds_as_a_key(self, config):
        assert [run.seed for run in runs(config, "--seed", "3")] == [3]
        assert [run.seed for run in runs(config, "--seed", "3,4")] == [3, 4]

    def test_the_order_of_the_keys_does_not_matter(self, config):
        one = runs(config, "--hidden_dim", "20", "--dropout", "0.1")
        assert names(one) == names(runs(config, "--dropout", "0.1", "--hidden_dim", "20"))

    @pytest.mark.parametrize(
        "arguments",
        [
            ("--dropout", "0.1,0.10,1e-1"),
            ("--optimizer", "sgd,SGD"),
            ("--use_crf", "yes,True,1"),
            ("--max_sentence_length", "-1,None"),
            ("--avg_batch_loss", "on", "--ave_batch_loss", "true"),
        ],
    )
    def test_what_means_the_same_is_one_run(self, config, arguments):
        assert len(runs(config, *arguments)) == 1

    def test_several_configs(self, config, tmp_path):
        Path("other").mkdir()
        Path("other/pos.config").write_text(Path(config).read_text())
        found = runs([config, "other/pos.config", config], "--hidden_dim", "20,40")
        assert [str(run.model_dir.parent) for run in found] == ["runs/ner"] * 2 + ["runs/pos"] * 2
        Path("other/ner.yaml").write_text("train_dir: x\n")
        with pytest.raises(ConfigError, match="would have one folder"):
            runs([config, "other/ner.yaml"])


class TestValuesWithCommas:
    def test_lists_are_taken_whole_and_repeated(self, config):
        found = runs(config, "--freeze", "word,char", "--freeze", "word", "--freeze=")
        assert [run.config.training.freeze for run in found] == [("word", "char"), ("word",), ()]

    def test_columns(self, config):
        layouts = ["word,label", "word,-,label"]
        found = runs(config, "--columns", layouts[0], "--columns", layouts[1])
        assert [run.config.corpus.columns for run in found] == [
            ("word", "label"),
            ("word", "-", "label"),
        ]

    def test_a_feature_is_added_to_those_of_the_config(self, config):
        with open(config, "a") as file:
            file.write("feature=[POS] emb_size=5\n")
        found = runs(
            config, "--feature", "[Cap] from=capitalization", "--feature", "[Cap] emb_size=3"
        )
        assert [[spec.name for spec in run.config.corpus.feature] for run in found] == [
            ["POS", "Cap"]
        ] * 2
        assert len(set(names(found))) == 2

    def test_a_path_may_hold_a_comma(self, config):
        for name in ("a,b.txt", "c.txt"):
            Path(name).write_text(Path(SAMPLE / "dev.bioes").read_text())
        found = runs(config, "--dev_dir", "a,b.txt", "--dev_dir", "c.txt")
        assert [run.config.files.dev_dir for run in found] == ["a,b.txt", "c.txt"]


class TestNames:
    def test_paths_are_legible_and_apart(self):
        one, other = (row_name({"dev_dir": path}) for path in ("data/x.txt", "data_x.txt"))
        assert one.startswith("dev_dir=data_x.txt~") and other == "dev_dir=data_x.txt"

    @given(
        st.lists(
            st.dictionaries(st.sampled_from(["dev_dir", "freeze"]), st.text(max_size=300)),
            min_size=2,
            max_size=2,
            unique_by=lambda x: str(sorted(x.items())),
        )
    )
    def test_different_settings_have_different_names_fit_for_a_folder(self, pair):
        one, other = (row_name(dict(sorted(settings.items()))) for settings in pair)
        assert one != other
        for name in (one, other):
            assert len(name) < 210 and name.isascii() and name.isprintable()
            assert not set(name) & set("/\\ *?[]'\"$&;|<>")


class TestMistakes:
    @pytest.mark.parametrize("key", OWN_KEYS)
    def test_keys_of_the_sweep_itself(self, config, key):
        with pytest.raises(ConfigError, match=f"{key} is set by the sweep itself"):
            runs(config, f"--{key}", "x")

    @pytest.mark.parametrize(
        ("arguments", "seeds", "what"),
        [
            (["--hiden_dim", "20,40"], None, "unknown key 'hiden_dim' .*hidden_dim"),
            (["--hidden_dim", "20,forty"], None, "hidden_dim='forty' is not a whole number"),
            (["--hidden_dim", "20,41"], None, "hidden_dim"),
            (["--seed", "1"], "2", "seeds are given twice"),
            (["--plugins", "x"], None, "plugins are the same for all runs"),
            ([], "0", "--seeds 0"),
            ([], "many", "--seeds many"),
            ([], "1,x", "seed='x' is not a whole number"),
            (["--train_dir", "-"], None, "a sweep reads it more than once"),
            (["--dev_dir", "no/such.file"], None, "does not exist"),
        ],
    )
    def test_are_said_before_anything_is_trained(self, config, arguments, seeds, what):
        with pytest.raises(ConfigError, match=what):
            runs(config, *arguments, seeds=seeds)
        assert not Path("runs").exists()
