"""SymPy, which onnx_ir imports for expressions of sizes, loaded by their first use."""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader

_LATE = ("sympy", "onnx_ir._symbolic_shapes")


class _LateFinder:
    """Finds the modules that wait for their first attribute."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, path) if name in _LATE else None
        if found is not None and found.loader is not None:
            found.loader = LazyLoader(found.loader)
        return found


def import_sympy_late() -> None:
    """Let the imports of SymPy in onnx_ir wait, which are two thirds of its time.

    For processes that read a file and end; modules that are imported already stay as they are.
    """
    if _LateFinder not in sys.meta_path:
        sys.meta_path.insert(0, _LateFinder)
