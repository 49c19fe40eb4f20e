"""What the documentation pages promise, made to happen: their fenced blocks, read and run.

The word after a fence says what a block is. ``bash``: commands, run. ``python``: run, all blocks of
a page in one namespace. ``config``: read as a config. ``text``: output, or the content of a file.
``console``: for the reader's own machine or files, not run. A second word names the file
that the reader is told to save the block as.

``python tests/docs/pages.py PAGE FOLDER`` runs a page in a process of its own.
"""

import io
import logging
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from ncrf import load_config
from ncrf.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LANGUAGES = ("bash", "config", "console", "python", "text")
_FENCE = re.compile(r"^```(\w*)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    file: str | None
    text: str

    @property
    def end(self) -> int:
        """The line of its second fence."""
        return self.line + self.text.count("\n") + 1


def blocks(page: str) -> list[Block]:
    """The blocks of ``docs/PAGE.md``, in order."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, *found.groups())
        for found in _FENCE.finditer(text)
    ]


def prepare(folder: Path, sentences: int | None = None) -> None:
    """Copy into ``folder`` what the commands of a page need, ``sentences`` of each corpus."""
    shutil.copytree(ROOT / "configs", folder / "configs")
    shutil.copytree(ROOT / "sample_data", folder / "sample_data", ignore=lambda *_: ["source"])
    shutil.copy(ROOT / "main.py", folder)
    if sentences is None:
        return
    for path in (folder / "sample_data").iterdir():
        if path.suffix in (".bioes", ".pos", ".seg"):
            parts = path.read_text(encoding="utf-8").split("\n\n")
            path.write_text("\n\n".join(parts[:sentences]) + "\n\n", encoding="utf-8")


def run_page(page: str, folder: Path, *, compare: bool = True) -> dict[str, object]:
    """Do in ``folder`` what a page says, block by block; returns its Python namespace.

    With ``compare`` a ``text`` block right after a block that ran must be what that printed.
    """
    names: dict[str, object] = {"__name__": page}
    printed, end = "", 0
    with _at_home(folder):
        for block in blocks(page):
            where = f"docs/{page}.md, line {block.line}"
            if block.file is not None:
                Path(block.file).write_text(block.text, encoding="utf-8")
            if block.language == "bash":
                printed, end = _run_commands(block.text, where), block.end
            elif block.language == "config":
                load_config(_saved(block), check_files=False)
            elif block.language == "python" and block.file is None:
                with redirect_stdout(io.StringIO()) as out:
                    exec(compile(block.text, where, "exec"), names)
                printed, end = out.getvalue(), block.end
            elif compare and block.language == "text" and block.line - end == 2:
                assert_like(printed, block.text, where)
    return names


def assert_like(printed: str, shown: str, where: str = "") -> None:
    """The page shows what was printed: ``...`` stands for anything, and numbers may differ."""
    pattern = re.escape(_masked(shown)).replace(re.escape("..."), ".*")
    assert re.fullmatch(pattern, _masked(printed), re.DOTALL), (
        f"{where} shows\n{shown}\nbut there is\n{printed}"
    )


def _masked(text: str) -> str:
    """Text whose numbers and runs of spaces are all alike."""
    text = re.sub(r"-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?", "0", text)
    return re.sub(r" +", " ", text).strip()


def _saved(block: Block) -> Path:
    path = Path(block.file or "shown.config")
    path.write_text(block.text, encoding="utf-8")
    return path


@contextmanager
def _at_home(folder: Path):
    """Work in ``folder``; afterwards the process and its log are as they were."""
    before, root = os.getcwd(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []  # not to be closed by a command that sets up its own
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        root.handlers, root.level = handlers, level


def _run_commands(text: str, where: str) -> str:
    """Run commands one by one; what they print, or else what they say on standard error."""
    out, err = io.StringIO(), io.StringIO()
    for command in text.replace("\\\n", " ").splitlines():
        with redirect_stdout(out), redirect_stderr(err):
            status = _run(command)
        assert status == 0, f"{where}: {command}\n{err.getvalue()}"
    return out.getvalue() or err.getvalue()


def _run(command: str) -> int:
    """Run one command; those of ncrf and Python in this process, which is quicker."""
    before, _, last = command.rpartition(" | ")
    words = shlex.split(last)
    if words[:2] == ["python", "main.py"]:
        words = ["ncrf", *words[2:]]
    if words[0] != "ncrf" and not (words[0] == "python" and words[1].endswith(".py")):
        return _bash(command)
    given = subprocess.run(["bash", "-c", before], capture_output=True, check=True).stdout
    stdin, path = sys.stdin, sys.path[:]
    sys.stdin = io.TextIOWrapper(io.BytesIO(given))
    sys.path.insert(0, os.getcwd())
    try:
        if words[0] == "python":
            runpy.run_path(words[1], run_name="__main__")
            return 0
        computes = words[1] in ("train", "decode", "run", "report") or words[1].startswith("-")
        return main([*words[1:], *(["--threads", "1"] if computes else [])])
    finally:
        sys.stdin, sys.path[:] = stdin, path


def _bash(command: str) -> int:
    """Run a command that is not ncrf's; ``python`` is this one."""
    here = f'python() {{ "{sys.executable}" "$@"; }}\n'
    done = subprocess.run(["bash", "-c", here + command], capture_output=True, text=True)
    print(done.stdout, end="")
    print(done.stderr, end="", file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    run_page(sys.argv[1], Path(sys.argv[2]))
