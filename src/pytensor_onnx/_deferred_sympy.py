"""Let onnx_ir load SymPy when it is used and not when it is imported, which takes 0.3 s or more.

onnx_ir needs SymPy for arithmetic on the names of dimensions, which this package does by its own
rules. While onnx_ir is imported, a module stands in for SymPy that loads it on first use.
"""

import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_DEFERRED, _USER = "sympy", "onnx_ir"


class _StandIn(ModuleType):
    """Module whose attributes are those of SymPy."""

    def __init__(self) -> None:
        super().__init__(_DEFERRED)
        self._importing: int | None = threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._importing == threading.get_ident():
            return self._function(name)
        return getattr(self._load(), name)

    def _function(self, name: str) -> Callable[..., Any]:
        """Return a function of SymPy that loads it when it is called."""

        def call(*args: Any, **kwargs: Any) -> Any:
            return getattr(self._load(), name)(*args, **kwargs)

        return call

    def _load(self) -> ModuleType:
        self._stop()
        return import_module(_DEFERRED)

    def _stop(self) -> None:
        """Leave the name to SymPy itself."""
        self._importing = None
        if sys.modules.get(_DEFERRED) is self:
            del sys.modules[_DEFERRED]


class _Finder(MetaPathFinder):
    """Finds onnx_ir once, with a loader that defers SymPy."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _USER or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if _DEFERRED in sys.modules:
            self._loader.exec_module(module)
            return
        stand_in = sys.modules[_DEFERRED] = _StandIn()
        try:
            self._loader.exec_module(module)
        except Exception:
            # Another version may need SymPy itself.
            stand_in._stop()
            for name in [n for n in sys.modules if n.startswith(f"{_USER}.")]:
                del sys.modules[name]
            self._loader.exec_module(module)
        finally:
            stand_in._stop()


def defer_sympy() -> None:
    """Defer the import of SymPy by onnx_ir, unless that is imported already."""
    if _USER not in sys.modules and not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
