"""The keys of a run and its data: what to do, which files, how they are read and written."""

from __future__ import annotations

from dataclasses import dataclass

from ncrf.config.keys import key, key_group
from ncrf.config.values import (
    FeatureSpec,
    parse_auto_boolean,
    parse_columns,
    parse_features,
    parse_label_column,
    parse_limit,
    parse_vector_cache,
    parse_word_limit,
)

_TAGGING = {"sentence_classification": (False,)}
_COLUMNS = {**_TAGGING, "file_format": ("columns",)}
_CHARS = {"use_char": (True,)}


@key_group("run")
@dataclass(frozen=True)
class Run:
    """What to do, and on which machine."""

    status: str = key(
        "train",
        "Whether to train a model or to decode with one. Unset: decode if raw_dir and "
        "load_model_dir are set and train_dir is not, else train.",
        choices=("train", "decode"),
    )
    seed: int = key(
        42,
        "Seed of everything random; the same seed, files and machine give the same numbers.",
        interval="[0, 4294967295]",
    )
    gpu: bool | None = key(
        None,
        "True computes on the GPU and fails without one, False on the CPU. Unset: the GPU if "
        "there is one.",
    )
    threads: int | None = key(
        None,
        "How many processor threads to compute with. Unset: all there are, and one for training a "
        "CNN over words in batches of at most 16 sentences, where more do not help.",
        interval="[1, 1024]",
    )
    plugins: tuple[str, ...] = key(
        (),
        "Python modules to import before this config is checked; they may register layers and "
        "keys of their own. They are never stored with a model.",
        allowed="module names with commas between them",
    )


@key_group("files")
@dataclass(frozen=True)
class Files:
    """Input and output files; relative paths start at the current directory."""

    train_dir: str | None = key(
        None,
        "The corpus to train on: a file, whatever the name says.",
        unit="path",
        aliases=("train",),
    )
    dev_dir: str | None = key(
        None,
        "The corpus that chooses the best epoch. Unset: the last epoch is kept.",
        unit="path",
        aliases=("dev",),
    )
    test_dir: str | None = key(
        None,
        "A corpus that is scored once, at the end, with the best model.",
        unit="path",
        aliases=("test",),
    )
    raw_dir: str | None = key(
        None,
        "The file to decode, with or without labels; - is standard input.",
        unit="path",
        aliases=("raw",),
    )
    decode_dir: str | None = key(
        None,
        "Where decoding writes. Unset or -: standard output.",
        unit="path",
        aliases=("output",),
    )
    model_dir: str | None = key(
        None, "The model folder that training makes.", unit="path", aliases=("savemodel",)
    )
    load_model_dir: str | None = key(
        None, "The model folder to decode with.", unit="path", aliases=("loadmodel",)
    )
    dset_dir: str | None = key(
        None,
        "NCRF++'s second name for the model folder; it may not name another one.",
        unit="path",
        aliases=("savedset",),
    )
    init_from: str | None = key(
        None, "A model folder whose weights training starts from.", unit="path"
    )
    vector_cache: str = key(
        "auto",
        "Where a large vector file is kept in a form that loads at once, after it was first read: "
        "auto, beside it or, where that cannot be written, in the user's cache folder; off, "
        "nowhere; or in a folder of your choice.",
        parse=parse_vector_cache,
        allowed="auto, off, or a folder",
    )
    resume: bool = key(
        False, "Go on with the unfinished training in model_dir from its last complete epoch."
    )
    overwrite: bool = key(False, "Replace the model, finished or not, that model_dir holds.")


@key_group("corpus")
@dataclass(frozen=True)
class Corpus:
    """How a corpus file is read and what its labels mean."""

    columns: tuple[str, ...] | None = key(
        None,
        "The columns in order, as in word,[POS],-,label. Unset: the word first, the label last, "
        "[NAME]value cells between them.",
        parse=parse_columns,
        allowed="word, label, [NAME] (a feature), - (skipped), with commas between them",
        used_when=_COLUMNS,
    )
    column_separator: str = key(
        "auto",
        "What stands between columns; auto takes the tab if the first line has one, else spaces.",
        choices=("auto", "tab", "space"),
        used_when=_COLUMNS,
    )
    comment_prefix: str | None = key(
        None, "Lines of a corpus that begin with this text are comments. Unset: none are."
    )
    file_format: str = key(
        "columns",
        "How the corpora are laid out: in columns that columns= names, or as CoNLL-U.",
        choices=("columns", "conllu"),
        used_when=_TAGGING,
    )
    label_column: str = key(
        "upos",
        "The column of a CoNLL-U file that holds the label; misc:KEY takes KEY=… from the last.",
        parse=parse_label_column,
        allowed="upos, xpos, feats, deprel, misc:KEY",
        used_when={"file_format": ("conllu",), "sentence_classification": (False,)},
    )
    raw_format: str = key(
        "columns",
        "How raw_dir is laid out: in columns like a corpus, or in lines, one sentence each, with "
        "spaces between words.",
        choices=("columns", "lines"),
        used_when=_TAGGING,
    )
    sentence_classification: bool = key(
        False,
        "Learn one label for a whole sentence; a corpus then has lines of the form "
        "words ||| label.",
        shapes_model=True,
    )
    number_normalized: bool = key(
        True,
        "Look words up with every digit turned to 0; output keeps the words as they stood.",
        shapes_model=True,
    )
    lowercase: bool = key(
        False,
        "Look words up in lower case, so that all their spellings share one vector; characters and "
        "features see them as they stood.",
        shapes_model=True,
    )
    seg: bool | str = key(
        True,
        "True chooses the best epoch by span F1, False by accuracy of single labels; auto looks "
        "whether the labels mark spans.",
        parse=parse_auto_boolean,
        allowed="auto, True, False",
        used_when=_TAGGING,
    )
    input_scheme: str = key(
        "auto",
        "The scheme of the labels in the files; auto tells it from their prefixes.",
        choices=("auto", "IOB1", "IOB2", "BIOES", "BMES", "BILOU", "plain"),
        used_when=_TAGGING,
    )
    tag_scheme: str = key(
        "keep",
        "The scheme that the model is trained in; keep takes the file's own (BIO for IOB1).",
        choices=("keep", "BIO", "BIOES"),
        shapes_model=True,
        used_when=_TAGGING,
    )
    label_delimiter: str = key(
        "-",
        "What stands between prefix and type of a label, as in B-PER.",
        shapes_model=True,
        used_when=_TAGGING,
    )
    partial_labels: str = key(
        "auto",
        "Which labels of the training file stand for several: unknown takes ? for any label, sets "
        "takes A|B for one of these as well, none takes every label as it stands; auto is unknown "
        "where labels mark spans, else none. The loss is then that of all labelings that agree.",
        choices=("auto", "none", "unknown", "sets"),
        used_when=_TAGGING,
    )
    max_sentence_length: int | None = key(
        None,
        "Training skips longer sentences and says how many; decoding never skips any. "
        "Unset or -1: no limit.",
        unit="words",
        parse=parse_limit,
        allowed="whole number, at least 1, or -1",
    )
    max_word_length: int = key(
        -1,
        "How many characters of a word the character layer sees; -1 for all.",
        unit="characters",
        parse=parse_word_limit,
        allowed="whole number, at least 1, or -1",
        shapes_model=True,
        used_when=_CHARS,
    )
    feature: tuple[FeatureSpec, ...] = key(
        (),
        "One feature column and its embedding. Repeat the line for more; columns without a line "
        "are 20 wide. from=capitalization computes the feature from the word.",
        parse=parse_features,
        allowed="[NAME] emb_size=20 emb_dir=FILE emb_norm=False from=capitalization",
        shapes_model=True,
    )
    unk_singleton: float = key(
        0.1,
        "How likely, in every epoch, a word that training has only once is replaced by the unknown "
        "word, which is trained in this way; characters and feature values likewise.",
        interval="[0, 1]",
    )


@key_group("decoding")
@dataclass(frozen=True)
class Decoding:
    """What decoding writes."""

    nbest: int | None = key(
        None,
        "How many labelings of each sentence are written, with their probabilities. Unset "
        "or 0: the best one, without.",
        interval="[0, 10000]",
    )
    output_scheme: str = key(
        "input",
        "The scheme of the labels that decoding writes; input is that of the training file.",
        choices=("input", "BIO", "BIOES"),
        used_when=_TAGGING,
    )
    decode_format: str = key(
        "text",
        "Columns as in a corpus (text), or one JSON object a line (json).",
        choices=("text", "json"),
    )
    marginals: bool = key(False, "Also write the probability of every single label.")
    forced_labels: bool = key(
        False,
        "Keep the labels that the raw file gives, in the model's scheme, and decode the others, "
        "written ?, around them.",
        used_when=_TAGGING,
    )
    decode_batch_tokens: int = key(
        16384,
        "How much is decoded at once, padding included, unless batch_size says otherwise.",
        unit="tokens",
        interval="[1, inf)",
    )
