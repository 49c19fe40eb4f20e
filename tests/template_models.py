"""Small template models for tests: a corpus in columns, its template file, keys of a training."""

from tests.conftest import SAMPLE

TEMPLATES = """\
# word and part of speech
U00:%x[0,0]
U01:%x[-1,0]
U02:%x[0,2]/%x[1,2]
B
B01:%x[0,2]
"""


def template_keys(folder, **keys):
    """Keys of a training with templates on a part of the sample data; ``keys`` go before them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "template").write_text(TEMPLATES)
    return {
        "train_dir": str(SAMPLE / "dev.cappos.bioes"),
        "model_dir": str(folder / "model"),
        "template_file": str(folder / "template"),
        "iteration": 3,
        "threads": 1,
        **keys,
    }


def classical_keys(folder, **keys):
    """Keys of the classical CRF."""
    return template_keys(folder, word_seq_feature="none", **{"optimizer": "LBFGS", **keys})


def network_keys(folder, **keys):
    """Keys of an LSTM with templates beside it."""
    small = {"hidden_dim": 12, "char_hidden_dim": 8, "char_emb_dim": 6, "word_emb_dim": 10}
    return template_keys(folder, **{**small, **keys})


def sentences():
    """Two sentences as a mapping, with the features of the sample data."""
    return [
        {"words": ["Anna", "met", "Bo"], "Cap": ["1", "0", "1"], "POS": ["PROPN", "VERB", "PROPN"]},
        {"words": ["Oslo"], "Cap": ["1"], "POS": ["PROPN"]},
    ]
