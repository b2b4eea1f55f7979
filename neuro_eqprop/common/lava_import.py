"""The import of Lava as it is published, on Pythons newer than 3.10.

lava-nc 0.10.0 fails there when it is imported: a data class without a hash is the default of a
field. `neuro-eqprop lava install` changes that line on disk. For those who installed the published
wheel in another way, `import neuro_eqprop` registers a finder that changes the same line in memory,
for imports of Lava that follow.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

MODULE = "lava.magma.compiler.var_model"
SOURCE = "@dataclass\nclass ByteEncoder:"
HASHABLE = "@dataclass(unsafe_hash=True)\nclass ByteEncoder:"


class HashableEncoder:
    """Finds the one module, with a loader that changes its source."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the one module; others are left to the finders of Python."""
        if fullname != MODULE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = HashableLoader(spec.loader.name, spec.loader.path)
        return spec


class HashableLoader(SourceFileLoader):
    """Loads the module from its changed source, without bytecode files."""

    def get_code(self, fullname: str) -> CodeType:
        """Compile the source, changed where it holds the line."""
        source = self.get_data(self.path).decode()
        changed = source.replace(SOURCE, HASHABLE)
        code: CodeType = compile(changed, self.path, "exec", dont_inherit=True)
        return code


def make_importable() -> None:
    """Let the published Lava be imported on Pythons newer than 3.10."""
    if sys.version_info >= (3, 11) and not any(
        isinstance(finder, HashableEncoder) for finder in sys.meta_path
    ):
        sys.meta_path.insert(0, HashableEncoder())
