"""The config to decode with: a model's own, changed where a decode config may change it."""

from __future__ import annotations

from ncrf.config.checks import is_used
from ncrf.config.keys import Key, all_keys
from ncrf.config.schema import Config
from ncrf.config.values import FeatureSpec

#: Groups that belong to one run, never to the model.
_RUN_GROUPS = ("run", "files")
#: Widths that the model took from a vector file, if it had one, instead of from the key.
_WIDTH_FROM = {"word_emb_dim": "word_emb_dir", "char_emb_dim": "char_emb_dir"}


def merge_decode_config(model: Config, decode: Config) -> Config:
    """The model's own config, then what the decode config (file and command line) sets.

    Run and files are the decode config's alone, and so is what ``is_set`` says. ConfigError,
    with both values, where it sets a key that shapes the model to something else.
    """
    values = model.values()
    for declared in all_keys():
        name = declared.name
        if declared.group in _RUN_GROUPS:
            values[name] = decode.value(name)
        elif decode.is_set(name):
            if declared.shapes_model:
                _refuse_other_shape(declared, model, decode)
            else:
                values[name] = decode.value(name)
    return Config.from_values(values, decode.origins)


def _refuse_other_shape(declared: Key, model: Config, decode: Config) -> None:
    """ConfigError if the decode config asks for another model than the one there is."""
    name = declared.name
    if name == "feature":
        for spec in decode.corpus.feature:
            _refuse_other_feature(spec, model, decode)
        return
    asked, there = decode.value(name), model.value(name)
    if asked == there or not is_used(model, name):
        return
    if name in _WIDTH_FROM and model.value(_WIDTH_FROM[name]) is not None:
        return
    if name == "tag_scheme" and asked == "keep":  # asks for nothing
        return
    raise decode.error(
        name,
        f"{name}={asked} does not fit the model, which has {name}={there}",
        "the model's value, or leave the key out",
    )


def _refuse_other_feature(asked: FeatureSpec, model: Config, decode: Config) -> None:
    """A decode config may list fewer features than the model has, but none that differ."""
    there = {spec.name: spec for spec in model.corpus.feature}
    known = there.get(asked.name)
    if known is None:
        names = ", ".join(f"[{name}]" for name in there) or "none"
        what = f"feature [{asked.name}] does not fit the model, which has {names}"
    elif known.source != asked.source or (
        known.emb_size != asked.emb_size and known.emb_dir is None
    ):
        what = f"feature {_spoken(asked)} does not fit the model, which has {_spoken(known)}"
    else:
        return
    raise decode.error(f"feature [{asked.name}]", what, "the model's, or leave the line out")


def _spoken(spec: FeatureSpec) -> str:
    options = [f"{option}={value}" for option, value in spec.flat().items() if option != "name"]
    return " ".join([f"[{spec.name}]", *options])
