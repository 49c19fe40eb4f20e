"""Config files: keys declared once, read, checked and written. Nothing here imports torch."""

from ncrf.config.checks import idle_keys, is_used, log_idle_keys
from ncrf.config.document import configuration_page, keys_table, table_of
from ncrf.config.folders import model_folder
from ncrf.config.keys import Key, add_choice, all_keys, choices_of, find_key, groups, key, key_group
from ncrf.config.load import load_config, parse_model_config, read_model_config
from ncrf.config.merge import merge_decode_config
from ncrf.config.plugins import import_plugins
from ncrf.config.schema import (
    Chars,
    Config,
    Corpus,
    Decoding,
    Files,
    Inference,
    Network,
    Origin,
    Run,
    TemplateKeys,
    Training,
    WholeCorpus,
    WordLayer,
    Words,
)
from ncrf.config.values import FeatureSpec
from ncrf.config.write import config_text, write_config

__all__ = [
    "Chars",
    "Config",
    "Corpus",
    "Decoding",
    "FeatureSpec",
    "Files",
    "Inference",
    "Key",
    "Network",
    "Origin",
    "Run",
    "TemplateKeys",
    "Training",
    "WholeCorpus",
    "WordLayer",
    "Words",
    "add_choice",
    "all_keys",
    "choices_of",
    "config_text",
    "configuration_page",
    "find_key",
    "groups",
    "idle_keys",
    "import_plugins",
    "is_used",
    "key",
    "key_group",
    "keys_table",
    "load_config",
    "log_idle_keys",
    "merge_decode_config",
    "model_folder",
    "parse_model_config",
    "read_model_config",
    "table_of",
    "write_config",
]
