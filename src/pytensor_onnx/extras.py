"""Optional packages: the extras that install them, and the error where one is missing."""

from collections.abc import Sequence
from importlib.util import find_spec

from pytensor_onnx.errors import MissingExtraError

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
