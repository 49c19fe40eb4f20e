"""README.md names every command, every page and every folder there is, and nothing else."""

import re

import pytest

from ncrf.cli import main
from tests.docs.pages import DOCS, ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_all_commands_stand_there(capsys):
    main([])
    said = set(re.findall(r"^  ncrf (\w+)", capsys.readouterr().out, re.MULTILINE))
    listed = set(re.findall(r"^ncrf (\w+) ", TEXT, re.MULTILINE))
    assert len(said) > 10
    assert listed == said - {"run"} and "`ncrf run CONFIG`" in TEXT


def test_all_pages_are_linked():
    linked = set(re.findall(r"\]\(docs/([\w-]+)\.md\)", TEXT))
    assert linked == {path.stem for path in DOCS.glob("*.md")}


@pytest.mark.parametrize("folder", ["configs", "sample_data", "scripts", "docs", "ncrf", "tests"])
def test_all_folders_are_explained(folder):
    assert re.search(rf"^{folder}/ +\w", TEXT, re.MULTILINE) and (ROOT / folder).is_dir()


def test_decision_records_have_numbers_of_their_own():
    numbers = sorted(path.name[:4] for path in (DOCS / "decisions").glob("*.md"))
    assert numbers == [f"{number:04d}" for number in range(1, len(numbers) + 1)]
