"""Values that are known at import: constants, and sizes of axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import toposort
from pytensor.scan.op import Scan
from pytensor.tensor.basic import (
    Join,
    MakeVector,
    alloc,
)
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Reshape, Shape, Shape_i
from pytensor.tensor.subtensor import Subtensor
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.axis_sizes import axis_sizes, value_of
from pytensor_onnx.rewriting.engine.predicates import elementwise

type Size = int | TensorVariable

MOST_FOLDED = 4096
"""Elements of a constant up to which its operations are computed at import."""


def known(variable: Variable) -> np.ndarray | None:
    """Return the value of a constant, None for other variables.

    Examples
    --------
    >>> known(pt.constant([1, 2])), known(pt.lvector())
    (array([1, 2]), None)
    """
    return np.asarray(variable.data) if isinstance(variable, Constant) else None


def static(variable: Variable, what: str) -> np.ndarray:
    """Return the value of an operand that must be known at import.

    Parameters
    ----------
    variable
        The operand.
    what
        Its name in the operator, for the error.

    Raises
    ------
    UnsupportedCase
        If it depends on inputs of the graph.
    """
    value = known(variable)
    if value is None:
        raise not_known(f"its operand {what} must be known at import", variable)
    return value


def not_known(reason: str, *variables: Any) -> UnsupportedCase:
    """Return an error for values that are not known, with the inputs that they depend on."""
    values, arrays = _inputs_of([v for v in variables if isinstance(v, Variable)])
    names = [*values, *(f"the sizes of {v.name}" for v in arrays)]
    of = f"depends on {' and '.join(names)}" if names else "is computed by the graph"
    return UnsupportedCase(f"{reason}, and {of}", arguments_for(*variables))


def arguments_for(*variables: Any) -> str:
    """Return a call with the inputs whose values and sizes some variables depend on.

    Examples
    --------
    >>> n, x = pt.lscalar("n"), pt.tensor("x", shape=(None, 3))
    >>> print(arguments_for(n * pt.exp(x).shape[0]))
    from_onnx(model, inputs={'n': value}, shapes={'x': (size, 3)})
    """
    values, arrays = _inputs_of([v for v in variables if isinstance(v, Variable)])
    given = ", ".join(f"{name!r}: value" for name in values)
    sizes = ", ".join(
        f"{v.name!r}: ({', '.join('size' if n is None else str(n) for n in v.type.shape)}"
        f"{',' * (v.type.ndim == 1)})"
        for v in arrays
    )
    parts = [f"inputs={{{given}}}"] * bool(given) + [f"shapes={{{sizes}}}"] * bool(sizes)
    return f"from_onnx(model, {', '.join(parts) or 'inputs={name: value}'})"


def _inputs_of(variables: Sequence[Variable]) -> tuple[list[str], list[TensorVariable]]:
    """Return the names of the inputs whose values are needed, and those whose sizes are."""
    pending = [(v, False) for v in reversed(variables)]
    seen, values, arrays = set(pending), dict[str, None](), dict[TensorVariable, None]()
    while pending:
        variable, is_size = pending.pop()
        if variable.owner is None:
            if variable.name and not isinstance(variable, Constant):
                if not is_size:
                    values[str(variable.name)] = None
                elif None in variable.type.shape:
                    arrays[variable] = None
            continue
        is_size = is_size or isinstance(variable.owner.op, Shape | Shape_i)
        for operand in reversed(variable.owner.inputs):
            rank = getattr(operand.type, "ndim", 0)
            # The sizes of a result depend on those of operands, and on the values of integers.
            is_number = rank < 2 and getattr(operand.type, "dtype", "int").startswith("int")
            key = (operand, is_size and (rank > 1 or not is_number or operand.owner is None))
            if key not in seen and not (key[1] and rank == 0):
                seen.add(key)
                pending.append(key)
    return list(values), list(arrays)


def static_ints(variable: Variable | None, what: str) -> list[int] | None:
    """Return an operand of integers that must be known, None if it is left out."""
    return None if variable is None else [int(n) for n in np.ravel(static(variable, what))]


def static_number(variable: Variable | None, what: str, default: Any) -> Any:
    """Return an operand of one number that must be known, a default if it is left out."""
    return default if variable is None else static(variable, what).reshape(-1)[0].item()


def like(x: Variable, number: Any) -> np.ndarray:
    """Return numbers in the dtype of a variable."""
    return np.asarray(number, dtype=x.type.dtype)


def size(x: TensorVariable, axis: int) -> Size:
    """Return the size of an axis, an int if it is known."""
    known_size = x.type.shape[axis]
    if known_size is not None:
        return int(known_size)
    if x.owner is not None and isinstance(x.owner.op, Reshape):
        # Sizes that a Reshape is given need no arithmetic to find them again.
        wanted = x.owner.inputs[1].owner
        given = wanted.inputs[axis] if wanted and isinstance(wanted.op, MakeVector) else None
        if given is not None and is_size(given):
            return given
    return Shape_i(axis)(x)


def sizes(x: TensorVariable) -> list[Size]:
    """Return the sizes of all axes, ints where they are known."""
    return [size(x, axis) for axis in range(x.type.ndim)]


_NOT_NEGATIVE = ps.Add | ps.Mul | ps.IntDiv | ps.Cast | ps.Mod | ps.Maximum | ps.Minimum
_ARE_SIZES: WeakKeyDictionary[Variable, bool] = WeakKeyDictionary()


def is_size(variable: Any) -> bool:
    """Return whether a 0-d variable is computed from sizes, and cannot be negative.

    Examples
    --------
    >>> n = pt.matrix("x").shape[0]
    >>> is_size(n), is_size(2 * n + 1), is_size(n - 1)
    (True, True, False)
    """
    if isinstance(variable, int):
        return variable >= 0
    value = known(variable)
    if value is not None:
        return value.ndim == 0 and bool(value >= 0)
    if variable.type.ndim or variable.owner is None:
        return False
    found = _ARE_SIZES.get(variable)
    if found is None:
        found = _ARE_SIZES[variable] = _is_computed_size(variable)
    return found


def _is_computed_size(variable: Variable) -> bool:
    op, operands = variable.owner.op, variable.owner.inputs
    if isinstance(op, Shape_i):
        return True
    if isinstance(op, Subtensor):
        return isinstance(getattr(operands[0].owner, "op", None), Shape)
    return elementwise(variable, _NOT_NEGATIVE) is not None and all(map(is_size, operands))


def is_size_of(number: Size, x: TensorVariable, axis: int) -> bool:
    """Return whether a number is the size of an axis.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> is_size_of(size(x, 1), x, 1), is_size_of(size(x, 1), x, 0), is_size_of(3, x, 1)
    (True, False, False)
    """
    if isinstance(number, int):
        return x.type.shape[axis] == number
    return value_of(number) == axis_sizes(x)[axis]


def filled(value: Any, lengths: Sequence[Size]) -> TensorVariable:
    """Broadcast a value to sizes.

    Other than `pt.full`, it does not rewrite all that the sizes are computed from, to find ones
    that are known.

    Examples
    --------
    >>> x = pt.matrix("x")
    >>> filled(0.0, [size(x, 0), 3]).type.shape
    (None, 3)
    """
    value = pt.as_tensor(value)
    added = len(lengths) - value.type.ndim
    shape = tuple(
        n if isinstance(n, int) else value.type.shape[axis] if is_whole else None
        for axis, n in enumerate(lengths, start=-added)
        for is_whole in [axis >= 0 and not value.type.broadcastable[axis]]
    )
    sizes = [pt.as_tensor(n, dtype="int64") if isinstance(n, int) else n for n in lengths]
    return Apply(alloc, [value, *sizes], [TensorType(value.type.dtype, shape)()]).outputs[0]


def elements(vector: Variable) -> list[Size]:
    """Return the elements of a vector of sizes, ints where they are known.

    Raises
    ------
    UnsupportedCase
        If the length of the vector is not known.

    Examples
    --------
    >>> n = pt.lscalar("n")
    >>> elements(as_vector([n, 3])), elements(pt.constant([4, 5]))
    ([n, 3], [4, 5])
    """
    value = known(vector)
    if value is not None:
        return [int(n) for n in value.reshape(-1)]
    if vector.type.ndim == 0:
        return [vector]
    if vector.owner is not None and isinstance(vector.owner.op, MakeVector):
        return [_as_size(v) for v in vector.owner.inputs]
    if vector.owner is not None and isinstance(vector.owner.op, Join):
        return [size for part in vector.owner.inputs for size in elements(part)]
    (length,) = vector.type.shape
    if length is None:
        raise not_known("the number of its sizes must be known at import", vector)
    return [vector[i] for i in range(length)]


def as_vector(values: Sequence[Size], dtype: str = "int64") -> TensorVariable:
    """Return sizes as a vector, a constant if all are known."""
    if all(isinstance(v, int) for v in values):
        return pt.constant(np.asarray(values, dtype=dtype).reshape(-1), dtype=dtype)
    return MakeVector(dtype)(*(_as_number(v, dtype) for v in values))


def _as_number(value: Size, dtype: str) -> TensorVariable:
    if isinstance(value, int):
        return _constant(value, dtype)
    return value if value.type.dtype == dtype else value.astype(dtype)


@lru_cache
def _constant(value: int, dtype: str) -> TensorVariable:
    return pt.constant(value, dtype=dtype)


def _as_size(variable: Variable) -> Size:
    value = known(variable)
    return variable if value is None else int(value)


def folded(results: Sequence[Variable], operands: Iterable[Variable | None]) -> list[Variable]:
    """Compute results whose operands are small constants.

    Examples
    --------
    >>> x = pt.constant([1, 2])
    >>> folded([x + x], [x])[0].data
    array([2, 4])
    """
    given = [v for v in operands if v is not None]
    if not all(isinstance(v, Constant) and v.data.size <= MOST_FOLDED for v in given):
        return list(results)
    if all(isinstance(v, Constant) for v in results) or not _are_small(results):
        return list(results)
    nodes = list(toposort(results))
    if any(isinstance(n.op, OpFromGraph | Scan | RandomVariable) for n in nodes):
        return list(results)
    values: dict[Variable, Any] = {}
    for node in nodes:
        arrays = [v.data if isinstance(v, Constant) else values.get(v) for v in node.inputs]
        if any(array is None for array in arrays):
            return list(results)
        storage: list[list[Any]] = [[None] for _ in node.outputs]
        with np.errstate(all="ignore"):
            node.op.perform(node, arrays, storage)
        values.update(
            (v, v.type.filter(cell[0], allow_downcast=True))
            for v, cell in zip(node.outputs, storage, strict=True)
        )
    return [
        pt.constant(values[v], dtype=v.type.dtype, name=v.name) if v in values else v
        for v in results
    ]


def _are_small(results: Sequence[Variable]) -> bool:
    return all(
        np.prod([1 if n is None else n for n in v.type.shape], dtype="float64") <= MOST_FOLDED
        for v in results
    )
