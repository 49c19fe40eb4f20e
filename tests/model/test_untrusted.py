"""A model folder of unknown origin runs nothing, imports nothing, and opens nothing else."""

import os
import shutil
import sys

import pytest

from ncrf import Tagger
from ncrf.config import config_text
from ncrf.errors import ConfigError, InputError
from ncrf.model import manifest
from tests.conftest import small_keys
from tests.faults import events_go_to


@pytest.fixture
def model(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "model")


def sealed(place, **contents):
    """Change files of a folder as somebody would who knows of checksums."""
    manifest.update(place, {name.replace("_", "."): text for name, text in contents.items()})


RUNNING = {
    "import",
    "exec",
    "compile",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "subprocess.Popen",
    "socket.connect",
    "pickle.find_class",
    "marshal.loads",
    "ctypes.dlopen",
    "os.remove",
    "os.rename",
    "os.mkdir",
}


def test_loading_runs_imports_and_writes_nothing(model):
    """What Python's audit events tell between the start and the end of a load."""
    Tagger.load(model).predict([["Anna"]])  # imports what the program itself imports late
    seen = []

    def listen(event, arguments):
        if event in RUNNING:
            seen.append((event, str(arguments[0])))
        elif event == "open":
            path, _, flags = arguments
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) or not str(path).startswith(
                (str(model), "/proc/", "/sys/")
            ):
                seen.append((event, str(path)))

    with events_go_to(listen):
        Tagger.load(model).predict([["Anna", "left"]])
    assert seen == []
    with events_go_to(listen):
        exec("pass")
    assert {event for event, _ in seen} == {"compile", "exec"}  # the watch is awake


@pytest.mark.parametrize("line", ["plugins: evil", "plugins: [evil]", "PLUGINS: evil"])
def test_plugins_that_it_names_are_refused(model, tmp_path, monkeypatch, line):
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)
    text = (model / "config.yaml").read_text() + line + "\n"
    sealed(model, config_yaml=text.encode())
    number = text.count("\n")
    with pytest.raises(ConfigError, match=rf"config\.yaml:{number}: a model may not name plugins"):
        Tagger.load(model)
    assert "evil" not in sys.modules


@pytest.mark.parametrize(
    "value",
    ["!!python/object/apply:os.system ['touch was_here']", "!!python/name:os.system x"],
)
def test_tags_of_yaml_mean_nothing(model, tmp_path, monkeypatch, value):
    monkeypatch.chdir(tmp_path)
    text = (model / "config.yaml").read_text() + f"word_emb_dir: {value}\n"
    sealed(model, config_yaml=text.encode())
    try:
        Tagger.load(model)
    except InputError as error:
        assert "config.yaml" in str(error)
    assert not (tmp_path / "was_here").exists()


def test_weights_that_are_a_pickle_are_damage(model):
    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(model / "was_here"),))

    import pickle

    sealed(model, model_safetensors=pickle.dumps(Evil()))
    with pytest.raises(InputError, match=r"model\.safetensors: is damaged"):
        Tagger.load(model)
    assert not (model / "was_here").exists()


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/null", "a pipe"])
def test_vectors_are_read_from_files_alone(tmp_path, place):
    """A folder that names a device, or a pipe, as its vector file does not hang its reader."""
    (tmp_path / "vectors").write_text("Anna 1 2\n")
    keys = {"word_emb_dir": str(tmp_path / "vectors"), "dev_dir": None, "iteration": 1}
    tagger = Tagger.train(small_keys(tmp_path / "model", **keys))
    if place == "a pipe":
        place = str(tmp_path / "pipe")
        os.mkfifo(place)
    text = config_text(tagger.config.replace(word_emb_dir=place))
    sealed(tmp_path / "model", config_yaml=text.encode())
    with pytest.raises(InputError, match=f"^{place}: is no file"):
        Tagger.load(tmp_path / "model")
