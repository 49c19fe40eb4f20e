"""No file is ever read in a way that could run code: no call that unpickles, none that evaluates.

A walk over the program itself. Names are followed through its imports, so that
``from torch import load as f`` is seen; a call of anything that is called ``load`` is a fault,
unless it is one of those that are known to read plain data.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

FORBIDDEN_MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "pickletools",
    "copyreg",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "dbm",
    "marshal",
    "code",
    "codeop",
    "runpy",
    "imp",
}
FORBIDDEN_CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "os.system",
    "os.popen",
    "importlib.import_module",
    "importlib.__import__",
}
#: Functions whose name is that of a reader of pickles, and that read none.
KNOWN_READERS = {
    "json.load",
    "json.loads",
    "safetensors.torch.load",
    "safetensors.numpy.load",
    "safetensors.safe_open",
    "ncrf.model.pretrained.load",
    "ncrf.config.load_config",
    "ncrf.decode.load.load_predictor",
    "ncrf.data.corpora.load_corpus",
    "gensim.models.fasttext.load_facebook_vectors",
    "gensim.models.KeyedVectors.load_word2vec_format",
    "yaml.compose",
}
#: Where code is imported by a name: the user's plugins, and parts of the program itself.
IMPORTERS = {"ncrf/config/plugins.py", "ncrf/cli/__init__.py", "ncrf/__init__.py"}
#: A config key, and the method that copies tensors.
HARMLESS = {"load_model_dir", "load_state_dict"}


def faults(source, file="x.py"):
    """What stands in a Python source that might run code from a file, with the lines."""
    tree = ast.parse(source)
    names, found = {}, []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
                if alias.name.split(".")[0] in FORBIDDEN_MODULES:
                    found.append((node.lineno, alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            if node.module.split(".")[0] in FORBIDDEN_MODULES:
                found.append((node.lineno, node.module))
    for node in ast.walk(tree):
        name = full_name(node, names)
        if name is None:
            if isinstance(node, ast.Attribute) and reads_pickles(node.attr):
                found.append((node.lineno, node.attr))  # of an object that some call returned
            continue
        forbidden = name in FORBIDDEN_CALLS and not (file in IMPORTERS and "import" in name)
        if forbidden or (reads_pickles(name.rpartition(".")[2]) and name not in KNOWN_READERS):
            found.append((node.lineno, name))
    found += [
        (node.value.lineno, "allow_pickle")
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle"
    ]
    return found


def full_name(node, names):
    """``torch.load`` for a name or attribute that leads back to an import or a builtin."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or not (parts or node.id in names or node.id in BUILTINS):
        return None
    return ".".join([names.get(node.id, node.id), *reversed(parts)])


BUILTINS = {name for name in FORBIDDEN_CALLS if "." not in name}


def reads_pickles(name):
    if name in HARMLESS:
        return False
    return name in ("load", "loads", "Unpickler", "unsafe_load", "full_load", "genfromtxt") or (
        name.startswith(("load_", "read_pickle", "fromfile", "memmap"))
    )


FILES = ["main.py", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "ncrf").rglob("*.py"))]


def test_of_the_program():
    assert len(FILES) > 90
    found = {file: faults((ROOT / file).read_text(encoding="utf-8"), file) for file in FILES}
    assert {file: lines for file, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "def f():\n    import joblib",
        "import shelve as harmless",
        "import marshal",
        "import torch\ntorch.load(path)",
        "import torch\ntorch.load(path, weights_only=True)",
        "from torch import load as f\nf(path)",
        "import torch.jit as j\nj.load(path)",
        "import torch\nread = torch.load",
        "import numpy as np\nnp.load(path)",
        "from numpy import load\nload(path, allow_pickle=True)",
        "f(path, allow_pickle=True)",
        "from gensim.models import KeyedVectors\nKeyedVectors.load(path)",
        "import gensim\ngensim.models.FastText.load(path)",
        "import yaml\nyaml.load(text, Loader=yaml.UnsafeLoader)",
        "import yaml\nyaml.unsafe_load(text)",
        "import pandas\npandas.read_pickle(path)",
        "make().load(path)",
        "eval(text)",
        "exec(text)",
        "import os\nos.system(text)",
        "import importlib\nimportlib.import_module(name)",
        "from importlib import import_module\nimport_module(name)",
        "__import__(name)",
    ],
)
def test_a_fault_is_seen(source):
    assert faults(source)


@pytest.mark.parametrize(
    "source",
    [
        "import json\njson.loads(text)",
        "def f():\n    from safetensors.torch import load\n    return load(data)",
        "labeler.load_state_dict(tensors)",
        "load = 3",
        "import re\nre.compile('x')",
    ],
)
def test_what_is_none_is_not(source):
    assert not faults(source)
