"""Sizes that PyTensor needs to be equal, by the signatures of Ops."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.linalg.decomposition.lu import LU, LUFactor

from pytensor_onnx.functions.registry import core_axes
from pytensor_onnx.graph.dims import Dim, dims_of
from pytensor_onnx.rewriting.engine.inner_graphs import core_op

Cores = Sequence[Sequence[str]]
Place = tuple[int, int]
"""Number of an operand, and one of its axes."""


class OperandSizes:
    """Sizes that a node needs to be equal, and the sizes of its results.

    Axes before those of the signature broadcast only if PyTensor knows that they have a size of
    one. Letters of the signature are the sizes of results. Those of operands are checked by the
    definitions, in NumPy's words, but for LU factorisations, whose matrices are declared square:
    verification would otherwise compare the factors of other ones.

    Parameters
    ----------
    node
        A node whose operands are tensors, if its Op has a signature.
    inputs
        Their values in the model.
    may_differ
        Function that tells whether two dimensions may have different sizes in a file, where an
        axis of size one broadcasts: they then keep their names, and the result has its own.

    Attributes
    ----------
    pairs
        Dimensions that are equal.
    batch_pairs
        Places of equal sizes that ONNX would broadcast: two operands with their axes.
    """

    def __init__(
        self, node: Apply, inputs: Sequence[Any], may_differ: Callable[[Dim, Dim], bool]
    ) -> None:
        operands, results = _cores(node) or ((), ())
        is_declared = isinstance(core_op(node.op), LU | LUFactor)
        self.pairs: list[tuple[Dim, Dim]] = []
        self.batch_pairs: list[tuple[Place, Place]] = []
        first: dict[Hashable, Place] = {}
        self._sizes: dict[Hashable, Dim] = {}
        for i, (variable, value, core) in enumerate(
            zip(node.inputs, inputs, operands, strict=False)
        ):
            axes = zip(_axes(variable, core), dims_of(value) or (), strict=False)
            for position, (axis, dim) in enumerate(axes):
                if isinstance(axis, int):
                    place = i, position
                    known_place = first.setdefault(axis, place)
                    self.batch_pairs += [(known_place, place)] if known_place != place else []
                known = self._sizes.setdefault(axis, dim)
                if isinstance(axis, int) and may_differ(known, dim):
                    self._sizes[axis] = None
                elif axis is not None and (is_declared or not isinstance(axis, str)):
                    self.pairs.append((known, dim))
        self._letters = [_axes(*x) for x in zip(node.outputs, results, strict=False)]

    @property
    def results(self) -> list[list[Dim]]:
        """Dimensions of each result, None if unknown."""
        return [
            [self._sizes.get(axis) if axis is not None else 1 for axis in axes]
            for axes in self._letters
        ]

    def part(self, first: Dim, second: Dim, known: Dim) -> None:
        """Note that two sizes are compared when the model runs, and the one that results have."""
        self.pairs = [pair for pair in self.pairs if {*pair} != {first, second}]
        for axis, dim in self._sizes.items():
            if dim in (first, second):
                self._sizes[axis] = known


def _axes(variable: Variable, core: Sequence[str]) -> list[Hashable]:
    """Return a key of each axis: a letter, or the number of a batch axis that is not broadcast."""
    n_batch = variable.type.ndim - len(core)
    batch = [i - n_batch if variable.type.shape[i] != 1 else None for i in range(n_batch)]
    return [*batch, *core] if n_batch >= 0 else []


def _cores(node: Apply) -> tuple[Cores, Cores] | None:
    """Return the core axes of operands and results, or None if the Op has no gufunc signature."""
    op = node.op
    if isinstance(op, Elemwise):
        return [()] * len(node.inputs), [()] * len(node.outputs)
    if isinstance(op, Blockwise):
        return op.inputs_sig, op.outputs_sig
    operands, results = core_axes(getattr(op, "gufunc_signature", None))
    return None if operands is None or results is None else (operands, results)
