"""A corpus whose distributed files are in columns already, and stay as they are."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from preparation.counts import Counts
from preparation.sources import find
from preparation.writing import Part, Published, staged, write_parts


@dataclass(frozen=True)
class ColumnCorpus:
    """What is known of such a corpus.

    ``files`` gives the distributed file of each part (train, dev, test), ``published`` its
    counts, ``reading`` the config keys by which ncrf reads them.
    """

    name: str
    files: Mapping[str, str]
    reading: Mapping[str, str]
    published: Mapping[str, Counts]

    @property
    def contents(self) -> str:
        """The distributed files, in words."""
        *first, last = self.files.values()
        return f"{', '.join(first)} and {last}"

    def write(self, folder: Path, given: argparse.Namespace) -> None:
        """Write the parts as train.txt, dev.txt, test.txt, and count them; see ``write_parts``."""
        found = {
            part: find(given.source, [name], self.contents) for part, name in self.files.items()
        }
        parts = [
            Part(
                f"{part}.txt",
                file.name,
                file.lines(given.encoding),
                Published(self.published[part], self.name),
            )
            for part, file in found.items()
        ]
        write_parts(folder, parts, self.reading, any_version=given.any_version)

    def prepare(self, given: argparse.Namespace) -> None:
        """Do what the command line says."""
        with staged(given.target) as folder:
            self.write(folder, given)
