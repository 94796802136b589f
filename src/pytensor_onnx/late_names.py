"""Names that load late, and the extras that install the packages which they need."""

import ast
import pkgutil
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pytensor_onnx.errors import MissingExtraError


def late_names(package: str, file: str) -> tuple[Callable[[str], Any], list[str]]:
    """Return ``__getattr__`` and ``__all__`` of a package, from its imports for type checkers.

    Parameters
    ----------
    package, file
        ``__name__`` and ``__file__`` of the package. The block ``if TYPE_CHECKING`` of the file
        imports the names.

    Raises
    ------
    MissingExtraError
        By ``__getattr__``, for a name whose module needs a package of an extra that is missing.

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
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for imported in block.body
        if isinstance(imported, ast.ImportFrom)
        for alias in imported.names
    }

    def getattr_of(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = import_module(str(module_of[name]))
        except ModuleNotFoundError as error:
            if command := installs(error.name or ""):
                raise MissingExtraError(f"{package}.{name} needs {error.name}: {command}") from None
            raise
        return getattr(module, name)

    return getattr_of, sorted(module_of)


@cache
def import_modules(name: str) -> None:
    """Import a module, and all modules of a package, which register definitions or rewrites.

    Examples
    --------
    >>> import sys
    >>> import_modules("pytensor_onnx.functions.signal")
    >>> "pytensor_onnx.functions.signal.convolution" in sys.modules
    True
    """
    for module in pkgutil.iter_modules(getattr(import_module(name), "__path__", ())):
        import_module(f"{name}.{module.name}")


MODULES: dict[str, Sequence[str]] = {
    "ml": ("pytensor_ml", "sklearn"),
    "nutpie": ("nutpie",),
    "pymc": ("pymc",),
    "web": ("yaml",),
}
"""The modules that each extra installs."""


def installs(module: str) -> str:
    """Return the command that installs a module, empty if no extra does.

    Examples
    --------
    >>> installs("pymc.model"), installs("numpy")
    ("pip install 'pytensor-onnx[pymc]'", '')
    """
    name = module.partition(".")[0]
    extras = [extra for extra, modules in MODULES.items() if name in modules]
    return f"pip install 'pytensor-onnx[{extras[0]}]'" if extras else ""


def require(extra: str, purpose: str) -> None:
    """Raise if a module of an extra is missing.

    Parameters
    ----------
    extra
        Name of the extra.
    purpose
        What needs it, for the message.

    Raises
    ------
    MissingExtraError
        The message has the command that installs the extra.

    Examples
    --------
    >>> require("web", "the description of a page")
    """
    missing = [module for module in MODULES[extra] if find_spec(module) is None]
    if missing:
        names = " and ".join(missing)
        raise MissingExtraError(f"{purpose} needs {names}: {installs(missing[0])}")
