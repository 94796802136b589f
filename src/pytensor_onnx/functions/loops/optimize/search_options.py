"""Options of SciPy's optimizers that a search has."""

from collections.abc import Mapping
from typing import Any

_WITHOUT_EFFECT = ("disp", "full_output")


class Refused(Exception):  # noqa: N818  (no error, but the reason for a lowering to raise one)
    """A call of an optimizer that cannot be written as a loop, with advice.

    Parameters
    ----------
    reason
        Reason of the refusal, whose subject is the Op.
    instead
        Advice on another way.
    """

    def __init__(self, reason: str, instead: str) -> None:
        super().__init__(reason)
        self.reason, self.instead = reason, instead


class Options:
    """The keyword arguments of a call of SciPy; a search has to read each of them.

    Parameters
    ----------
    arguments
        The keyword arguments; those under ``"options"`` count as their own.

    Examples
    --------
    >>> options = Options({"tol": 1e-3, "options": {"maxiter": 7}})
    >>> options.take(1e-8, "xtol", "tol"), options.take(50, "maxiter")
    (0.001, 7)
    >>> options.check_all_taken()
    >>> Options({"bounds": [(0, 1)]}).check_all_taken()
    Traceback (most recent call last):
    ...
    pytensor_onnx.functions.loops.optimize.search_options.Refused: its option 'bounds'
    has no counterpart
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        given = dict(arguments)
        given.update(given.pop("options", None) or {})
        self._left = {key: value for key, value in given.items() if key not in _WITHOUT_EFFECT}

    def take(self, default: Any, *names: str) -> Any:
        """Return the option given by one of the names, or the default; the first name counts."""
        given = [self._left.pop(name, None) for name in names]
        return next((value for value in given if value is not None), default)

    def check_all_taken(self) -> None:
        """Raise if an option is left.

        Raises
        ------
        Refused
            With the names of the options.
        """
        names = ", ".join(repr(key) for key, value in self._left.items() if value is not None)
        if names:
            raise Refused(f"its option {names} has no counterpart", "leave it out")
