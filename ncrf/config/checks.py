"""What one key alone cannot say: combinations, files that must exist, keys without effect."""

from __future__ import annotations

import logging
import os

from ncrf.config.keys import ANY_VALUE, Key, all_keys, choices_of, find_key, unknown_key
from ncrf.config.schema import Config, Origin
from ncrf.config.template_keys import NO_WORD_LAYER, WHOLE_CORPUS
from ncrf.errors import ConfigError

logger = logging.getLogger(__name__)

#: The file in a model folder that holds the model's own config.
MODEL_CONFIG = "config.yaml"
_WAITING_CONFIG = f".{MODEL_CONFIG}.next"  # where a training was killed as it renamed its files

STANDARD_INPUT = "-"
_TRAINED_MODEL = "the folder of a model that ncrf trained"


def check_combinations(config: Config) -> None:
    """Refuse values that contradict each other. A decode config's sizes are the model's matter."""
    if config.run.status == "decode":
        return
    check_widths(config)
    _check_templates(config)
    _check_learner(config)
    _check_memory(config)
    files, training = config.files, config.training
    if files.resume and files.overwrite:
        raise config.error(
            "overwrite", "resume=True and overwrite=True exclude each other", "one of them"
        )
    if training.lr_schedule == "plateau" and files.dev_dir is None:
        raise config.error(
            "lr_schedule", "lr_schedule=plateau looks at the dev score", "dev_dir=PATH"
        )


def _check_templates(config: Config) -> None:
    """Refuse what templates do not go together with."""
    if config.templates.template_file is None:
        return
    if config.corpus.sentence_classification:
        raise config.error(
            "template_file",
            "template_file= is for labels of words",
            "sentence_classification=False",
        )
    if config.files.init_from is not None:
        raise config.error(
            "init_from", "init_from= does not go together with template_file=", "one of them"
        )


def _check_learner(config: Config) -> None:
    """Refuse a learner of the whole corpus for any model but the classical CRF."""
    name = config.training.optimizer
    if name not in WHOLE_CORPUS:
        return
    if config.templates.template_file is None:
        what, remedy = "needs feature templates", "template_file=PATH and word_seq_feature=none"
    elif not config.classical:
        parts = ("use_word_emb", "use_char", "use_word_seq")
        given = ", ".join(f"{part}=True" for part in parts if config.value(part))
        what = f"learns the classical CRF alone, but {given}"
        remedy = "word_seq_feature=none, or optimizer=SGD"
    elif config.inference.constraints == "all":
        what, remedy = "learns over all labelings, but constraints=all", "constraints=decode"
    else:
        return
    raise config.error("optimizer", f"optimizer={name} {what}", remedy)


def _check_memory(config: Config) -> None:
    """Refuse a document memory beside the classical CRF."""
    if config.inference.document_memory and config.classical:
        raise config.error(
            "document_memory",
            "document_memory=True is for models with a network, and this one has templates alone",
            "document_memory=False",
        )


def check_widths(config: Config) -> None:
    """Refuse an odd width where two directions share it, naming the next even one."""
    halves = []
    if is_used(config, "bilstm") and config.word_layer.bilstm:
        halves.append(("hidden_dim", "bilstm=True"))
    if config.chars.use_char and config.chars.char_seq_feature in ("LSTM", "GRU", "ALL"):
        halves.append(("char_hidden_dim", f"char_seq_feature={config.chars.char_seq_feature}"))
    for name, reason in halves:
        width = config.value(name)
        if width % 2:
            raise config.error(
                name,
                f"{name}={width} is odd, but {reason} gives each direction half of it",
                f"the next even value is {width + 1}",
            )


def check_files(config: Config) -> None:
    """Refuse missing keys and files before any work, naming key, file and line."""
    if config.run.status == "train":
        _require(config, "train_dir", "training needs a corpus")
        _require(config, "model_dir", "training needs a folder for the model")
        _check_corpora(config)
        _check_file(config, "template_file", config.templates.template_file)
        if config.files.init_from is not None:
            _check_folder(config, "init_from", config.files.init_from)
    else:
        _require(config, "raw_dir", "decoding needs a file to decode")
        _require(config, "load_model_dir", "decoding needs a model folder")
        if config.files.raw_dir != STANDARD_INPUT:
            _check_file(config, "raw_dir", config.files.raw_dir)
        _check_output(config)
        _check_folder(config, "load_model_dir", config.files.load_model_dir or "")
    for name in ("word_emb_dir", "char_emb_dir"):
        if is_used(config, name):
            _check_file(config, name, config.value(name))
    cache = config.files.vector_cache
    if cache not in ("auto", "off") and os.path.exists(cache) and not os.path.isdir(cache):
        raise config.error("vector_cache", f"vector_cache: {cache!r} is a file", "a folder's path")
    for spec in config.corpus.feature:
        _check_file(config, f"feature [{spec.name}]", spec.emb_dir)


def _check_corpora(config: Config) -> None:
    """ConfigError for a corpus that is not there; ``-`` is standard input, which is read once."""
    first = None
    for name in ("train_dir", "dev_dir", "test_dir"):
        path = config.value(name)
        if path != STANDARD_INPUT:
            _check_file(config, name, path)
        elif first is None:
            first = name
        else:
            raise config.error(
                name, f"{first} and {name} are both standard input", f"{name}: the path of a file"
            )


def check_model_folder(folder: str) -> None:
    """ConfigError if no trained model lies in ``folder``."""
    problem = _folder_problem(folder)
    if problem:
        raise ConfigError(f"{folder!r} {problem}", remedy=_TRAINED_MODEL)


def is_used(config: Config, name: str) -> bool:
    """Whether a key has any effect under the other keys of this config."""
    declared = find_key(name)
    if declared is None:
        raise unknown_key(name)
    return _conditions_hold(config, declared) and layer_chosen(config, declared.group) is not False


def idle_keys(config: Config) -> list[str]:
    """The keys that were given explicitly but that the chosen layers do not use.

    A switch that is off or a number that is 0 asks for nothing, and is not named.
    """
    return [
        k.name
        for k in all_keys()
        if config.is_set(k.name)
        and config.value(k.name) not in (False, 0, None, "", (), NO_WORD_LAYER)
        and not is_used(config, k.name)
    ]


def log_idle_keys(config: Config) -> None:
    """Say once which keys were given without any effect."""
    idle = idle_keys(config)
    if idle:
        logger.info("idle, the chosen layers do not use them: %s", ", ".join(idle))


def _conditions_hold(config: Config, declared: Key) -> bool:
    for other, values in declared.used_when.items():
        value = config.value(other)
        if value not in values and not (ANY_VALUE in values and value is not None):
            return False
    return True


def layer_chosen(config: Config, group: str) -> bool | None:
    """Whether a key chooses the layer that reads this group; None if no choice names it."""
    owners = [
        (k.name, choice)
        for k in all_keys()
        for choice, owned in choices_of(k.name).items()
        if owned == group
    ]
    return any(config.value(name) == choice for name, choice in owners) if owners else None


def _require(config: Config, name: str, need: str) -> None:
    """ConfigError if the key is not set, at the place that says what to do."""
    if config.value(name) is not None:
        return
    first = next(iter(config.origins.values()), Origin())
    file, line = config.origins.get("status", Origin(first.file))
    raise ConfigError(f"{need}, but {name} is not set", file=file, line=line, remedy=f"{name}=PATH")


def _check_file(config: Config, name: str, path: str | None) -> None:
    """ConfigError if something is named that cannot be read; a named pipe can."""
    if path is None or (os.path.exists(path) and not os.path.isdir(path)):
        return
    problem = "is a folder" if os.path.isdir(path) else "does not exist"
    raise config.error(name, f"{name}: {path!r} {problem}", "the path of a file")


def _check_folder(config: Config, name: str, folder: str) -> None:
    problem = _folder_problem(folder)
    if problem:
        given = _given_as(config, name)
        raise config.error(given, f"{given}: {folder!r} {problem}", _TRAINED_MODEL)


def _given_as(config: Config, name: str) -> str:
    """The key under which a model folder was given: ``load_model_dir`` may be ``dset_dir``."""
    names = (name, "dset_dir", "model_dir") if name == "load_model_dir" else (name,)
    return next((n for n in names if config.is_set(n)), name)


def _folder_problem(folder: str) -> str | None:
    """What is wrong with a folder that should hold a model; None if nothing is."""
    for name in (MODEL_CONFIG, _WAITING_CONFIG):
        if os.path.isfile(os.path.join(folder, name)):
            return None
    if not os.path.exists(folder):
        return "does not exist"
    return f"holds no {MODEL_CONFIG}" if os.path.isdir(folder) else "is a file"


def _check_output(config: Config) -> None:
    """Refuse an output that is a folder, or the input itself."""
    output, raw = config.files.decode_dir, config.files.raw_dir
    if output is None or output == "-":
        return
    if os.path.isdir(output):
        raise config.error("decode_dir", f"decode_dir: {output!r} is a folder", "a file's path")
    if raw and raw != STANDARD_INPUT and os.path.realpath(raw) == os.path.realpath(output):
        raise config.error(
            "decode_dir", f"decode_dir and raw_dir are the same file {output!r}", "another file"
        )
