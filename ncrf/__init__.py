"""ncrf: neural sequence labeling that a config file drives, with an exact CRF.

The public names: Tagger trains, loads and uses a model; load_config reads a config file; FeatureCRF
is the textbook CRF over sequences of integers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ncrf.config import Config, load_config
    from ncrf.feature_crf import FeatureCRF
    from ncrf.tagger import Tagger

    __version__: str

__all__ = ["Config", "FeatureCRF", "Tagger", "__version__", "load_config"]

_PLACES = {
    "Config": "ncrf.config",
    "FeatureCRF": "ncrf.feature_crf",
    "Tagger": "ncrf.tagger",
    "load_config": "ncrf.config",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: Tagger brings torch, ncrf.crf no more."""
    if name == "__version__":
        from importlib.metadata import version  # it costs more than all of ncrf.cli

        return version("ncrf")
    if name not in _PLACES:
        raise AttributeError(f"module 'ncrf' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
