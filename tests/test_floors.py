"""The floors of the house: a file imports from its own folder or from a lower floor."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent / "ncrf"
FLOORS = {
    "errors": 0,
    "config": 1,
    "data": 1,
    "evaluate": 2,
    "crf": 2,
    "model": 3,
    "decode": 4,
    "train": 5,
    "view": 5,
    "feature_crf": 6,
    "sklearn": 6,
    "tagger": 6,
    "cli": 7,
}


def imports(path):
    """Names of the ncrf modules that a file imports anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name for name in names if name.split(".")[0] == "ncrf")


def place(parts):
    """The folder, or top-level module, that a dotted name below ncrf belongs to."""
    return parts[0]


def test_imports_point_down():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        here = place(path.relative_to(ROOT).with_suffix("").parts)
        if here == "__init__":
            continue  # the package's front door: public names only
        for name in imports(path):
            there = place(name.split(".")[1:])
            if there not in FLOORS:
                continue  # a name of the package itself, such as __version__
            ground = here in ("config", "data") and there in ("config", "data")
            below = FLOORS[there] < FLOORS[here] and here != "crf"
            if not (there == here or ground or below):
                wrong.append(f"{path}: imports {name}")
    assert not wrong, "\n".join(wrong)


def test_every_folder_has_a_floor():
    found = {p.name.removesuffix(".py") for p in ROOT.iterdir() if not p.name.startswith("__")}
    assert found <= set(FLOORS)
