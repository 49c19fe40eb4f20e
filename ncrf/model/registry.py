"""Registries: how a layer becomes a value that a config key can take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from ncrf.errors import ConfigError

T = TypeVar("T")


class Registry(Generic[T]):
    """Classes under the names that the config key ``key`` gives them; any case matches."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._classes: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Class decorator that makes ``key=name`` choose the class."""

        def add(cls: type[T]) -> type[T]:
            if name.upper() in self._classes:
                raise ValueError(f"{self.key}={name} is registered twice")
            self._classes[name.upper()] = cls
            return cls

        return add

    def get(self, name: str) -> type[T]:
        """The class registered under ``name``; ConfigError names those there are."""
        try:
            return self._classes[name.upper()]
        except KeyError:
            known = ", ".join(self._classes)
            raise ConfigError(
                f"{self.key}={name}: no such layer", remedy=f"one of: {known}"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)
