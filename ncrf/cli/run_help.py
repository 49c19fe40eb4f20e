"""What ``--help`` says of the commands whose options are the config keys."""

from __future__ import annotations

_TRAIN = (
    *("train_dir", "dev_dir", "test_dir", "model_dir", "columns", "word_emb_dir", "tag_scheme"),
    *("iteration", "seed", "resume", "overwrite"),
)
_DECODE = (
    *("load_model_dir", "raw_dir", "decode_dir", "nbest", "marginals", "decode_format"),
    *("decoder", "word_emb_dir"),
)

_COMMANDS = {
    "run": (
        "python main.py --config CONFIG [--key value ...]\n"
        "       ncrf run CONFIG [--key value ...]",
        "Train or decode, as the key status says.",
        ("status",),
    ),
    "train": (
        "ncrf train CONFIG [--key value ...]",
        "Train a model. That needs at least train_dir and model_dir.",
        _TRAIN,
    ),
    "decode": (
        "ncrf decode CONFIG [--key value ...]",
        "Label a file with a model. That needs at least load_model_dir and raw_dir.",
        _DECODE,
    ),
}


def run_help(command: str) -> str:
    """The text for run, train or decode: its use, and the keys that are given most often."""
    from ncrf.config import table_of

    use, what, names = _COMMANDS[command]
    return (
        f"usage: {use}\n\n{what} CONFIG is a file of\n"
        "key=value lines, or YAML; keys on the command line go before those in it.\n\n"
        f"{table_of(names)}\n\nncrf keys lists all keys, ncrf keys WORD those with WORD in them."
    )
