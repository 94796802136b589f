"""SymPy, which onnx_ir imports for expressions of sizes, loaded by onnx_ir's first use of it."""

import builtins
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType, SimpleNamespace
from typing import Any

_USER = "onnx_ir._core"
"""The module of onnx_ir that imports SymPy, and a module of its own that uses SymPy at once."""
_EXPRESSIONS = "_symbolic_shapes"


class _Late(ModuleType):
    """Stands for a module, which is imported by the first attribute."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


def _import(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = None,
    level: int = 0,
) -> Any:
    wanted = fromlist or ()
    if name == "sympy" and not wanted:
        return _Late(name)
    if _EXPRESSIONS not in wanted:
        return __import__(name, globals, locals, wanted, level)
    others = [part for part in wanted if part != _EXPRESSIONS]
    package = __import__(name, globals, locals, others, level)
    late = _Late(f"{package.__name__}.{_EXPRESSIONS}")
    return SimpleNamespace(**{**vars(package), _EXPRESSIONS: late})


class _LoaderWithLateSympy(SourceFileLoader):
    """Runs a module whose imports of SymPy wait."""

    def exec_module(self, module: ModuleType) -> None:
        # Only this module sees the other import: a lazy `sympy` in `sys.modules` would give users
        # a second `sympy.core` where they import a part of it first.
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": _import}
        super().exec_module(module)


class _Finder:
    """Finds the module of onnx_ir that imports SymPy."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, path) if name == _USER else None
        # Files of other kinds, such as those of frozen applications, are imported as they are.
        if found is None or not isinstance(found.loader, SourceFileLoader):
            return None
        found.loader = _LoaderWithLateSympy(name, found.loader.path)
        return found


def import_sympy_late() -> None:
    """Let onnx_ir import SymPy when it first computes with sizes, since SymPy takes 0.3 s.

    Modules that are imported already stay as they are, and ``import sympy`` elsewhere too.
    """
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
