"""``python -m ncrf.config docs/configuration.md`` writes the page of all keys."""

import sys
from pathlib import Path

from ncrf.config.document import configuration_page

target = Path(*sys.argv[1:2] or ["docs/configuration.md"])
target.write_text(configuration_page(), encoding="utf-8")
