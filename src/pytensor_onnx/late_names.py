"""Names of a package that are imported with their module when they are first used."""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def late_names(package: str, file: str) -> tuple[Callable[[str], Any], list[str]]:
    """Return ``__getattr__`` and ``__all__`` of a package, from its imports for type checkers.

    Parameters
    ----------
    package, file
        ``__name__`` and ``__file__`` of the package. The block ``if TYPE_CHECKING`` of the file
        imports the names.

    Examples
    --------
    >>> import pytensor_onnx.nn
    >>> getattr_of, names = late_names("pytensor_onnx.nn", pytensor_onnx.nn.__file__)
    >>> "conv2d" in names, getattr_of("conv2d").__module__
    (True, 'pytensor_onnx.nn.conv')
    """
    module_of = {
        alias.name: imported.module
        for block in ast.parse(Path(file).read_text(encoding="utf-8")).body
        if isinstance(block, ast.If)
        for imported in block.body
        if isinstance(imported, ast.ImportFrom)
        for alias in imported.names
    }

    def getattr_of(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(str(module_of[name])), name)

    return getattr_of, sorted(module_of)
