"""ncrf: neural sequence labeling that a config file drives, with an exact CRF.

The public names: Tagger trains, loads and uses a model; load_config reads a config file.
"""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

from ncrf.config import Config, load_config

if TYPE_CHECKING:
    from ncrf.tagger import Tagger

__version__ = metadata.version("ncrf")
__all__ = ["Config", "Tagger", "__version__", "load_config"]


def __getattr__(name: str) -> Any:
    """Import Tagger, and torch with it, when it is first asked for."""
    if name == "Tagger":
        from ncrf.tagger import Tagger

        return Tagger
    raise AttributeError(f"module 'ncrf' has no attribute {name!r}")
