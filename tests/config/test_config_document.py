"""The tables of keys: complete, current, and readable in a terminal."""

from __future__ import annotations

import re
from pathlib import Path

from ncrf.config import all_keys, configuration_page, groups, keys_table, load_config

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == configuration_page(), (
        "run: python -m ncrf.config docs/configuration.md"
    )


def test_every_key_has_a_row_with_its_default():
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", configuration_page(), re.MULTILINE))
    assert list(rows) == [k.name for k in all_keys()]
    assert rows["hidden_dim"] == "`200`" and rows["clip"] == "unset"


def test_a_table_has_five_cells_in_every_row():
    for line in configuration_page().splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 6, line


def test_the_examples_on_the_page_load():
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", configuration_page(), re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks] == ["", "yaml"]
    loaded = []
    for language, text in blocks:
        Path("a.yaml" if language else "a.config").write_text(text, encoding="utf-8")
        config = load_config("a.yaml" if language else "a.config", check_files=False)
        loaded.append((config.files, config.training, config.corpus.feature[:2]))
    assert loaded[0] == loaded[1]
    assert loaded[0][0].train_dir == "data/train.txt" and loaded[0][1].clip is None


def test_the_terminal_table_has_every_key_and_group():
    lines = keys_table().splitlines()
    heads = [line for line in lines if re.match(r"[● ] \w", line)]
    assert [line[2:].split()[0] for line in heads] == [k.name for k in all_keys()]
    assert [name for name in groups() if f"\n{name}: " not in "\n" + keys_table()] == []
    assert max(map(len, lines)) <= 110
    marked = [line[2:].split()[0] for line in heads if line.startswith("●")]
    assert marked == [k.name for k in all_keys() if k.shapes_model]


def test_the_terminal_table_takes_a_part_of_a_name():
    table = keys_table("Batch_")
    assert "batch_size" in table and "max_batch_tokens" in table and "ave_batch_loss" in table
    assert "hidden_dim" not in table
    assert "word_emb_dir" in keys_table("wordemb")
    assert keys_table("hiddn") == "no key has 'hiddn' in it; the nearest name is hidden_dim"
