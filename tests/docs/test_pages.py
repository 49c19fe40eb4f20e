"""The pages of docs/: their commands run, their outputs are real, their links lead somewhere."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ncrf import load_config
from ncrf.config import idle_keys
from tests.docs.pages import DOCS, LANGUAGES, ROOT, assert_like, blocks, prepare, run_page

PAGES = sorted(path.stem for path in DOCS.glob("*.md"))
# Written by the program, or by people who do not follow the conventions of pages.py.
OTHERS = ("changelog", "configuration", "crf", "log", "results")
OWN = [page for page in PAGES if page not in OTHERS]


def test_every_page_stands_in_the_index():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w-]+)\.md\)", index))
    assert linked >= set(OWN) - {"index"}
    assert {"tutorial", "data", "tuning", "extending", "ncrfpp", "architecture", "python"} < linked


@pytest.mark.parametrize("page", OWN)
def test_blocks_say_what_they_are(page):
    for block in blocks(page):
        assert block.language in LANGUAGES, f"docs/{page}.md, line {block.line}"
    assert (DOCS / f"{page}.md").read_text(encoding="utf-8").count("```") == 2 * len(blocks(page))


@pytest.mark.parametrize("page", OWN)
def test_links_lead_somewhere(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, place = target.partition("#")
        assert (DOCS / path).exists(), f"docs/{page}.md: {target}"
        if place:
            headings = re.findall(r"^#+ (.*)$", (DOCS / path).read_text("utf-8"), re.MULTILINE)
            assert place in [h.lower().replace(" ", "-").strip("`") for h in headings], target


@pytest.mark.parametrize("page", OWN)
def test_files_that_are_named_exist(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    for path in re.findall(r"\b(?:ncrf|tests|configs|sample_data|scripts)/[\w./-]+\w", text):
        assert (ROOT / path).exists() or (ROOT / f"{path}.py").exists(), path


def test_the_tuning_commands_have_keys_and_values_that_exist():
    text = (DOCS / "tuning.md").read_text(encoding="utf-8")
    commands = re.findall(r"`(?:\.\.\.|ncrf train(?: first\.config)?) (--[^`]+)`", text)
    assert len(commands) > 15
    for command in commands:
        config = load_config({}, shlex.split(command), check_files=False)
        assert not idle_keys(config), command


@pytest.mark.parametrize(
    "page", ["data", "ncrfpp", "python", "error-analysis", "sklearn", "templates"]
)
def test_what_stands_there_runs(page, tmp_path):
    prepare(tmp_path, sentences=None if page == "data" else 30)
    run_page(page, tmp_path)


def test_the_tutorial_runs(tmp_path):
    """On little data, so that it is quick; what it prints is then another."""
    prepare(tmp_path, sentences=30)
    run_page("tutorial", tmp_path, compare=False)
    assert (tmp_path / "runs" / "test.out").exists()


@pytest.mark.slow
def test_the_tutorial_shows_what_is_printed(tmp_path):
    prepare(tmp_path)
    run_page("tutorial", tmp_path)


@pytest.mark.slow
def test_the_sweeps_page_shows_what_is_printed(tmp_path):
    prepare(tmp_path)
    run_page("sweeps", tmp_path)


def test_the_layer_of_the_extending_page_trains(tmp_path):
    """In a process of its own: a plugin adds keys and layers to those of the process."""
    prepare(tmp_path, sentences=30)
    page = [sys.executable, "-W", "error", Path(__file__).parent / "pages.py", "extending"]
    done = subprocess.run([*page, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "windows.out").exists()


def test_another_output_than_shown_is_found():
    assert_like("loss  1.25 best\nend\n", "loss 17.5 best\n...\n")
    assert_like('{"a": [1, 2], "b": 0.25}', '{"a": [1, ...], "b": 0.75}')
    for printed in ("loss 1.25\nend", "loss 1.25 best", "", "a\nloss 1.25 best\nend"):
        with pytest.raises(AssertionError):
            assert_like(printed, "loss 17.5 best\nend\n")
