"""Records of the catalogue: a function, its operands and its results."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from pytensor.tensor.variable import TensorVariable

T = "T"
"""Dtype of an operand that is the one of the function's domain: float32 or float64."""

Make = Callable[..., TensorVariable | Sequence[TensorVariable]]


@dataclass(frozen=True)
class Argument:
    """An operand or a result of a function.

    Attributes
    ----------
    name
        Its name.
    about
        Its meaning, with the range of values.
    dtype
        ``T``, or the name of a dtype.
    core
        Names of its last axes, with which the function computes; none for one that is
        elementwise.
    is_batched
        Whether any axes may come before the core axes.
    example
        Values for the test vectors, as nested lists.
    """

    name: str
    about: str = ""
    dtype: str = T
    core: tuple[str, ...] = ()
    is_batched: bool = True
    example: Any = None

    def dtype_in(self, dtype: str) -> str:
        """Return the dtype in the domain of a dtype."""
        return dtype if self.dtype == T else self.dtype

    @property
    def shape(self) -> str:
        """The shape, in words for readers."""
        axes = (*(("…",) if self.is_batched else ()), *self.core)
        return f"({', '.join(axes)})" if axes else "()"


@dataclass(frozen=True)
class Entry:
    """A function of the catalogue.

    Attributes
    ----------
    name
        Name of the function in its domain.
    family
        Page that the function is on.
    subject
        Distribution, bijector or function that it belongs to.
    about
        What it computes, in one sentence.
    inputs, outputs
        Operands and results.
    make
        Function of the operands as variables that returns the results.
    kind
        ``"elementwise"`` for operands of any shapes that broadcast, ``"core"`` for operands with
        core axes, ``"random"`` for draws, ``"plain"`` for operands as they are.
    """

    name: str
    family: str
    subject: str
    about: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    make: Make = field(compare=False)
    kind: str = "elementwise"

    @property
    def signature(self) -> str:
        """Names of operands and results, as in ``f(x, y) -> z``."""
        taken, given = (", ".join(x.name for x in part) for part in (self.inputs, self.outputs))
        return f"{self.name}({taken}) -> {given}"

    def document(self, dtype: str) -> str:
        """Return the documentation of the function in the domain of a dtype."""
        lines = [self.about, "", "Inputs"]
        lines += [_line(x, dtype) for x in self.inputs]
        lines += ["", "Outputs"]
        lines += [_line(x, dtype) for x in self.outputs]
        if self.kind == "elementwise" and len(self.inputs) > 1:
            lines += ["", "Operands broadcast, as those of Add."]
        error = self.largest_error(dtype)
        return "\n".join([*lines, *(["", f"Largest error: {error}."] if error else [])])

    def largest_error(self, dtype: str) -> str:
        """Return the largest error that was found against mpmath, empty if none was measured."""
        found = _errors().get(self.name, {})
        if dtype in found.get("ulp", {}):
            error = found["ulp"][dtype]
            return f"{error:.3g} ulp, against mpmath in the regions of the accuracy table"
        if dtype not in found:
            return ""
        points = f"against mpmath at {found['points']} points"
        if not found[dtype]:
            return f"none, {points}"
        return f"{found[dtype]:.1e} {self.unit}, {points}"

    @property
    def is_relative(self) -> bool:
        """Whether errors are relative to results, which are positive and may be small."""
        return self.outputs[0].name in ("probability", "variance")

    @property
    def is_integer(self) -> bool:
        """Whether errors are those of the probability for which an integer is the quantile."""
        return self.outputs[0].dtype == "int64"

    @property
    def is_of_matrices(self) -> bool:
        """Whether errors are relative to the largest element of a result."""
        return self.family == "matrices" and bool(self.outputs[-1].core)

    @property
    def unit(self) -> str:
        """The number that errors are relative to, in words for readers."""
        if self.is_of_matrices:
            return "of the largest element"
        if self.is_integer:
            return "of the probability"
        return "of the result" if self.is_relative else "of the result or of 1, if larger"


@cache
def _errors() -> Mapping[str, Any]:
    text = files("pytensor_onnx.catalogue").joinpath("errors.json").read_text(encoding="utf-8")
    return json.loads(text)


def _line(argument: Argument, dtype: str) -> str:
    about = f": {argument.about}" if argument.about else ""
    return f"  {argument.name} - {argument.dtype_in(dtype)} {argument.shape}{about}"


def examples_of(entry: Entry) -> Mapping[str, Any]:
    """Return the values of the operands for test vectors, by name."""
    return {x.name: x.example for x in entry.inputs}
