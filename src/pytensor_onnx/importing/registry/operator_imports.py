"""The registry of operators: functions of PyTensor variables, by operator and first version."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from pytensor_onnx.late_names import import_modules

MICROSOFT = "com.microsoft"
MACHINE_LEARNING = "ai.onnx.ml"

_FACTS = {"kept_axes", "outputs", "rank"}
_IMPORTS: defaultdict[tuple[str, str], list[OperatorImport]] = defaultdict(list)


@dataclass(frozen=True)
class OperatorImport:
    """How an operator becomes a PyTensor expression, from one version on.

    Attributes
    ----------
    operator, domain
        Name of the operator and its domain, empty for the operators of the standard.
    since
        First opset of the domain with this meaning of the operator.
    function
        Function of the operands, None where an optional one is left out, with the attributes as
        keyword arguments. It returns one variable, a list, or NotImplemented for the function of
        the standard.
    attributes
        Names of the attributes.
    facts
        Keywords for facts of the node: ``outputs``, the number of its results, ``rank``, the
        number of axes that the file gives the first one, or None, and ``kept_axes``, the axes,
        counted from the last, of equal sizes in the first operand and the first result.
    """

    operator: str
    domain: str
    since: int
    function: Callable[..., Any]
    attributes: frozenset[str]
    facts: frozenset[str]


def onnx_import[F: Callable[..., Any]](
    *operators: str, since: int = 1, domain: str = ""
) -> Callable[[F], F]:
    """Register a function as the import of operators.

    Parameters
    ----------
    operators
        Names of the operators that the function computes.
    since
        First opset with this meaning; a later registration takes its place from its opset on.
    domain
        Domain of the operators.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> @onnx_import("Twice", domain="example")
    ... def twice(x, *, offset=0):
    ...     return 2 * x + offset
    >>> sorted(import_of("example", "Twice", 1).attributes)
    ['offset']
    """

    def register(function: F) -> F:
        keywords = {
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.kind is p.KEYWORD_ONLY
        }
        facts = frozenset(keywords & _FACTS)
        attributes = frozenset(keywords - facts)
        for operator in operators:
            known = _IMPORTS[domain, operator]
            known.append(OperatorImport(operator, domain, since, function, attributes, facts))
            known.sort(key=lambda entry: entry.since)
        return function

    return register


@cache
def import_of(domain: str, operator: str, opset: int) -> OperatorImport | None:
    """Return the import of an operator in an opset, or None."""
    _load()
    entries = [entry for entry in _IMPORTS.get((domain, operator), ()) if entry.since <= opset]
    return entries[-1] if entries else None


def imported_operators() -> list[str]:
    """Return the names of the standard operators that are imported."""
    _load()
    return sorted(operator for domain, operator in _IMPORTS if not domain)


@cache
def _load() -> None:
    """Import the modules of all families, which register their operators."""
    package = __name__.rpartition(".registry")[0]
    import_modules(package)
    for family in ("loops", "networks"):
        import_modules(f"{package}.{family}")
