"""Registries of named entries, extended by third-party packages through entry points.

A package adds an entry by declaring it in its `pyproject.toml`:

    [project.entry-points."neuro_eqprop.models"]
    my_model = "my_package.my_model:MODEL"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, Generic, TypeVar

from neuro_eqprop.common.arrays import UnknownNameError, type_name

Entry = TypeVar("Entry")


class PluginError(ValueError):
    """A plug-in cannot be loaded or is not of the expected type."""


def entry_points(group: str) -> Mapping[str, Callable[[], Any]]:
    """Loaders of the installed entry points of a group, by name; nothing is imported yet."""
    from importlib.metadata import EntryPoint
    from importlib.metadata import entry_points as installed

    def loader(point: EntryPoint) -> Callable[[], Any]:
        def load() -> Any:  # noqa: ANN401
            try:
                return point.load()
            except Exception as error:
                raise PluginError(
                    f"plug-in {point.name!r} ({point.value}, group {group}) cannot be loaded: "
                    f"{error}; repair or uninstall its package"
                ) from error

        return load

    return {point.name: loader(point) for point in installed(group=group)}


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Entries by name: built-in ones, then those of installed plug-ins, each imported on first use.

    Parameters
    ----------
    kind
        What an entry is, for messages: "model", "code".
    entry_type
        Type that every entry must have.
    built_in
        Place of each built-in entry, as "module:attribute". They come first and cannot be replaced.
    group
        Entry-point group of third-party entries.

    """

    def __init__(
        self, kind: str, entry_type: type[Entry], built_in: Mapping[str, str], group: str
    ) -> None:
        self.kind, self.group = kind, group
        self._entry_type, self.built_in = entry_type, built_in
        self._loaded: dict[str, Entry] = {}
        self._plugins: Mapping[str, Callable[[], Any]] | None = None

    def find(self, name: str) -> Entry:
        """The entry of that name; `UnknownNameError` lists the names that exist."""
        if name in self:
            return self[name]
        raise UnknownNameError(self.kind, name, self)

    def loadable(self) -> dict[str, Entry]:
        """All entries but plug-ins that fail to load, so that these do not break a listing."""
        found = {}
        for name in self:
            with suppress(PluginError):
                found[name] = self[name]
        return found

    def __getitem__(self, name: str) -> Entry:
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def _load(self, name: str) -> Entry:
        if name in self.built_in:
            module, _, attribute = self.built_in[name].partition(":")
            entry = getattr(import_module(module), attribute)
        else:
            entry = self._third_party()[name]()
        if not isinstance(entry, self._entry_type):
            raise PluginError(
                f"{self.kind} {name!r} is {type_name(entry)}; entry points of group "
                f"{self.group} must name a {self._entry_type.__name__}"
            )
        return entry

    def _third_party(self) -> Mapping[str, Callable[[], Any]]:
        if self._plugins is None:
            self._plugins = entry_points(self.group)
        return self._plugins

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or name in self._third_party()

    def __iter__(self) -> Iterator[str]:
        yield from self.built_in
        yield from (name for name in self._third_party() if name not in self.built_in)

    def __len__(self) -> int:
        return sum(1 for _ in self)
