"""What the declared keys say about themselves: a table for a terminal, a page of documentation."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ncrf.config.keys import ANY_VALUE, Key, all_keys, groups, nearest

_WIDEST = 110  # of the first line of a key in a terminal
_MOST_VALUES = 4  # of another key that a condition lists; more are said in that key's own words
_KINDS = {bool: "True, False", int: "whole number", float: "number", str: "text", tuple: "list"}

_GRAMMAR = """\
# Configuration

<!-- Written by `python -m ncrf.config docs/configuration.md` from the declared keys. -->

Everything that ncrf does is said in a config file of `key=value` lines or in YAML. Every key can
also be given on the command line. `ncrf keys` prints the tables below, `ncrf keys WORD` those
keys that WORD occurs in.

## The two kinds of file

A file that ends in `.yaml` or `.yml` is YAML, any other has lines of `key=value`.

```
### a comment
train_dir=data/train.txt     # a comment after white space; the # in data/a#b is none
model_dir=runs/demo
optimizer=sgd                # names of keys and values of a choice: in any case
clip=                        # empty: unset, as if the line were not there
feature=[Cap] emb_size=20    # feature lines add up
feature=[POS] emb_size=10 emb_dir=data/pos.vectors emb_norm=True
feature=[Shape] from=capitalization
```

```yaml
files:                       # one level of section names is allowed and ignored
  train_dir: data/train.txt
  model_dir: runs/demo
optimizer: sgd
clip: null
feature:
  - "[Cap] emb_size=20"
  - {name: POS, emb_size: 10, emb_dir: data/pos.vectors, emb_norm: true}
```

- Booleans are true/false, yes/no, on/off or 1/0, in any case.
- Where unset is a value, `None` and `null` say it too.
- A key that is given twice: the last one counts, and a warning says so.
- Relative paths start at the current directory.
- An unknown key or a value that a key does not allow is an error that names file and line and
  what would be right. A key that the chosen layers do not use is named once as idle, no error.

## On the command line

`--key value` or `--key=value`; a boolean key may stand alone for True. NCRF++'s options are other
names of keys, good in files too:

{aliases}

`feature` on the command line adds to the file's lines; `--feature=` drops them.

## What goes before what

Training: the defaults, then the file, then the command line.

Decoding: the model's own `config.yaml`, then the file, then the command line. Keys with a ● shape
the model and are fixed when it is trained: a decode config that sets one of them to another value
is an error that shows both. Keys of the groups `run` and `files` are never taken from the model.

## Plugins

`plugins=my_layers` imports the module `my_layers` before the config is checked, from the current
directory too; it may declare keys and layers of its own. A model never names its plugins: whoever
loads it passes `plugins=` again.

## Names from NCRF++

- `model_dir`, `load_model_dir` and `dset_dir` name the model folder. NCRF++'s `PREFIX.dset`,
  `PREFIX.model` and `PREFIX.0.model` are understood as the folder PREFIX. Two of the keys may not
  name different folders.
- `*_transformer` and `*_finetune`, keys of NCRF++'s later branch, are accepted as long as they
  are None or False.
"""


def keys_table(substring: str = "", width: int = 100) -> str:
    """The keys as a table for a terminal: key, default and allowed values, the doc line below.

    With ``substring``, only the keys in whose name, aliases, group or doc line it occurs.
    """
    wanted = substring.lower()
    chosen = [k for k in all_keys() if wanted in _searched(k).lower()]
    if not chosen:
        close = nearest(substring, [k.name for k in all_keys()])
        return f"no key has {substring!r} in it; the nearest name is {close}"
    return _table(chosen, width)


def table_of(names: Sequence[str], width: int = 100) -> str:
    """The same table of some keys."""
    return _table([k for k in all_keys() if k.name in names], width)


def _table(chosen: Sequence[Key], width: int) -> str:
    names = max(len(k.name) for k in chosen)
    defaults = max(len(_default(k)) for k in chosen)
    parts = []
    for name, group_class in groups().items():
        own = [k for k in chosen if k.group == name]
        if own:
            parts.append(f"{name}: {_heading(group_class)}")
            parts.extend(_terminal_entry(k, names, defaults, width) for k in own)
            parts.append("")
    return "\n".join(parts).rstrip()


def configuration_page() -> str:
    """The text of ``docs/configuration.md``: the rules, then one table per group of keys."""
    aliases = ", ".join(f"`{a}` ({k.name})" for k in all_keys() for a in k.aliases)
    parts = [_GRAMMAR.replace("{aliases}", textwrap.fill(f"{aliases}.", 98))]
    for name, group_class in groups().items():
        rows = [_markdown_row(k) for k in all_keys() if k.group == name]
        parts.append(
            f"\n## {name}\n\n{_heading(group_class)}\n\n"
            "| key | default | allowed | ● | meaning |\n|---|---|---|---|---|\n" + "".join(rows)
        )
    return "".join(parts)


def allowed(declared: Key) -> str:
    """In words, the values that a key takes."""
    if declared.allowed is not None:
        text = declared.allowed
    elif declared.choices:
        text = ", ".join(declared.choices)
    elif declared.unit == "path":
        return "path"
    else:
        text = _KINDS[declared.type]
        if declared.interval is not None:
            text = f"{text}, {declared.interval}"
    return text if declared.unit is None else f"{text} ({declared.unit})"


def _searched(declared: Key) -> str:
    return "\n".join((declared.name, declared.group, declared.doc, *declared.aliases))


def _terminal_entry(declared: Key, names: int, defaults: int, width: int) -> str:
    mark = "●" if declared.shapes_model else " "
    start = f"{mark} {declared.name:<{names}}  {_default(declared):<{defaults}}  "
    values = textwrap.wrap(allowed(declared), max(40, _WIDEST - len(start)))
    head = start + f"\n{'':{len(start)}}".join(values)
    doc = textwrap.fill(
        _meaning(declared), width, initial_indent=" " * 6, subsequent_indent=" " * 6
    )
    return f"{head}\n{doc}"


def _markdown_row(declared: Key) -> str:
    default = _default(declared)
    cells = (
        f"`{declared.name}`",
        default if default == "unset" else f"`{default}`",
        allowed(declared),
        "●" if declared.shapes_model else "",
        _meaning(declared),
    )
    escaped = [cell.replace("|", "\\|").replace("*", "\\*") for cell in cells]
    return f"| {' | '.join(escaped)} |\n"


def _meaning(declared: Key) -> str:
    """The doc line, and under which other keys it counts."""
    only, never = [], []
    for other, values in declared.used_when.items():
        if values == (False,):
            never.append(other)
        elif values in ((True,), (ANY_VALUE,)):
            only.append(other)
        elif len(values) <= _MOST_VALUES:
            only.append(f"{other}={' or '.join(str(value) for value in values)}")
    conditions = [f"only with {' and '.join(only)}"] if only else []
    conditions += [f"not with {' or '.join(never)}"] if never else []
    sentence = "; ".join(conditions)
    return f"{declared.doc} {sentence[:1].upper()}{sentence[1:]}." if sentence else declared.doc


def _default(declared: Key) -> str:
    value = declared.default
    return "unset" if value is None or value == () else str(value)


def _heading(group_class: type) -> str:
    """The first line of a group's docstring."""
    return (group_class.__doc__ or group_class.__name__).strip().splitlines()[0]
