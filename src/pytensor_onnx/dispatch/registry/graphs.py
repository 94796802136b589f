"""The conversion of a graph node by node."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import AbstractFunctionGraph
from pytensor.graph.traversal import toposort
from pytensor.graph.type import Type
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.linalg.decomposition.lu import LU, LUFactor

from pytensor_onnx.dispatch.registry.basic import (
    Lowered,
    UnsupportedType,
    check_operands,
    check_type,
    has_no_lowering,
    is_array,
    is_supported,
    onnx_funcify,
)
from pytensor_onnx.dispatch.registry.problem_names import (
    nested_problems_as_written,
    problem_as_written,
)
from pytensor_onnx.encodings import is_encoded, tensor_types
from pytensor_onnx.errors import LoweringError, Problem, UnsupportedCase
from pytensor_onnx.functions.registry import core_axes
from pytensor_onnx.graph.builder import NO_BROADCAST, Builder, Described, name_failure
from pytensor_onnx.graph.names import LINE, LOOP, NODE, OP, VARIABLE
from pytensor_onnx.operators.dims import CHECKED, Dim, dims_of
from pytensor_onnx.ops.loops import loop_of_index
from pytensor_onnx.rewriting.engine.walkers import core_op
from pytensor_onnx.user_code import user_line


class GraphConverter:
    """Converts the nodes of PyTensor graphs into one builder, and collects all that cannot be.

    Parameters
    ----------
    build
        Builder that receives the nodes.
    typed
        Whether the values take names, ranks and static dimensions of the PyTensor variables; off
        for the body of a function that serves several ranks.
    """

    def __init__(self, build: Builder, *, typed: bool = True) -> None:
        self.build = build
        self.typed = typed and build.shaped
        self.values: dict[Variable, Any] = {}
        self.problems: list[Problem] = []
        self._lines: dict[Variable, str] = {}
        self._outer_line = build.provenance.get(LINE, "")

    def add_value(self, variable: Variable, value: ir.Value) -> None:
        """Let a value stand for a variable."""
        self.values[variable] = value

    def convert(self, nodes: Iterable[Apply]) -> None:
        """Lower the nodes, which must be in topological order."""
        for node in nodes:
            try:
                self._convert_node(node)
            except NestedProblems:
                raise
            except LoweringError as error:
                if not error.op:
                    error.op, error.made_at = str(node.op), self._line(node)
                raise
            except Exception as error:
                where = f", made at {line}" if (line := self._line(node)) else ""
                error.add_note(f"raised while {node.op} was converted{where}")
                raise

    def value_of(self, variable: Variable) -> Any:
        """Return the value of a variable in the model; for a constant, its initializer.

        Raises
        ------
        UnsupportedCase
            If the type of the variable has no counterpart in ONNX.
        """
        if variable in self.values:
            return self.values[variable]
        if not isinstance(variable, Constant):
            raise KeyError(variable)
        value = self._constant(variable)
        self.values[variable] = value
        return value

    def _constant(self, variable: Constant) -> Any:
        if not is_array(variable.type):
            return variable.data
        check_type(variable.type)
        data = np.asarray(variable.data, dtype=variable.type.dtype)
        return self.build.constant(data, name=variable.name)

    def _convert_node(self, node: Apply) -> None:
        line = self._line(node)
        self.build.provenance = _provenance(node, line)
        self.build.peek = self.values.get
        if any(not is_supported(v) and not isinstance(v, Constant) for v in node.inputs):
            # Their problem is known, and no value of their type stands for them.
            self.values.update((v, _placeholder(v)) for v in node.outputs)
            return
        try:
            for variable in node.outputs:
                check_type(variable.type)
            check_operands(node)
            inputs = [self.value_of(variable) for variable in node.inputs]
            inputs, sizes = self._equate_sizes(node, inputs)
            lowered = onnx_funcify(node.op, node, self.build, *inputs)
        except UnsupportedCase as case:
            self._add_problem(node, case, line)
            self.values.update((v, _placeholder(v)) for v in node.outputs)
            return
        except NestedProblems as nested:
            self.problems += nested_problems_as_written(
                node, nested.problems, line, has_no_lowering
            )
            self.values.update((v, _placeholder(v)) for v in node.outputs)
            return
        values = [lowered] if isinstance(lowered, ir.Value) else list(lowered or [])
        if len(values) != len(node.outputs):
            raise TypeError(f"the lowering of {node.op} returned {len(values)} values for {node}")
        for variable, value in zip(node.outputs, values, strict=True):
            is_tensor = is_array(variable.type) and not is_encoded(variable)
            if isinstance(value, ir.Value) and is_tensor:
                self._adopt(variable, value, sizes.get(variable, ()))
            self.values[variable] = value

    def _equate_sizes(
        self, node: Apply, inputs: Sequence[Any]
    ) -> tuple[list[Any], dict[Variable, list[Dim]]]:
        """Record sizes that a node needs to be equal.

        Returns the operands, checked where nothing else compares their sizes, and known dimensions
        of the results.
        """
        if not self.typed or not self.build.always_runs:
            return list(inputs), {}
        sizes = OperandSizes(node, inputs, self.build.scope.dims.are_computed_apart)
        checked = self._checked_sizes(sizes, inputs)
        self.build.equate_sizes(sizes.pairs, [x for x in inputs if isinstance(x, ir.Value)])
        return checked, dict(zip(node.outputs, sizes.results, strict=False))

    def _checked_sizes(self, sizes: OperandSizes, inputs: Sequence[Any]) -> list[Any]:
        """Return operands, with checks of computed sizes that the runtime would broadcast.

        Sizes with a check keep their own names, by which passes would find the check needless.
        """
        scope, checked = self.build.scope, list(inputs)
        if scope.broadcasts or scope.is_portable:
            return checked
        for (i, axis), (k, other) in sizes.batch_pairs:
            pair = (dims_of(inputs[i]) or ())[axis], (dims_of(inputs[k]) or ())[other]
            first, second = map(scope.dims.canonical, pair)
            is_open = [dim == 1 or scope.dims.is_computed(dim) for dim in (first, second)]
            if first == second or not any(is_open):
                continue
            sizes.part(*pair, known=first if is_open[1] else second)
            if not scope.dims.compare(first, second):
                continue
            # An assertion of the user about an operand comes before the comparison of its size.
            is_asserted = [CHECKED in inputs[n].meta for n in (i, k)]
            if is_asserted[1] or (is_open[1] and not is_asserted[0]):
                checked[k] = self._checked_size(checked[k], other, inputs[i], axis)
            else:
                checked[i] = self._checked_size(checked[i], axis, inputs[k], other)
        return checked

    def _checked_size(self, x: ir.Value, axis: int, like: ir.Value, other: int) -> ir.Value:
        """Return a value whose axis has the size of an axis of another one, or fail.

        A Reshape costs a tenth of a branch in the runtime, and nothing in a region.
        """
        build = self.build
        dims, wanted = list(build.dims(x)), build.dims(like)[other]
        target = build.sizes(like, other, other + 1)
        if len(dims) > 1:
            # A zero keeps the size of an axis. The runtime makes a joined size -1.
            target = build.Mul(target, build.ints([int(i == axis) for i in range(len(dims))]))
        checked: ir.Value = build.Reshape(x, target)
        dims[axis] = wanted
        checked.shape = ir.Shape(dims)
        name_failure(build, checked, ValueError(NO_BROADCAST))
        return checked

    def _line(self, node: Apply) -> str:
        """Return the user's line for a node; a gradient without one takes the line of an operand.

        Nodes of inner graphs have none at all, and take that of the Op.
        """
        if not node.outputs:
            return self._outer_line
        line = user_line(node.outputs[0])
        if not line:
            before = (self._lines[v] for v in node.inputs if v in self._lines)
            line = next(before, "") or self._outer_line
        if line:
            self._lines.update(dict.fromkeys(node.outputs, line))
        return line

    def _add_problem(self, node: Apply, case: UnsupportedCase, line: str) -> None:
        variable = node.outputs[0]
        if isinstance(case, UnsupportedType):
            self.problems.append(
                Problem(
                    subject=str(case.type),
                    variable=variable.name or str(variable),
                    where=line,
                    reason=case.reason,
                    hint=case.hint,
                    is_type=True,
                )
            )
        else:
            self.problems.append(problem_as_written(node, case, line, has_no_lowering))

    def _adopt(self, variable: Variable, value: ir.Value, found: Sequence[Dim] = ()) -> None:
        """Give a value the type and name of the variable that it computes.

        A size of zero in PyTensor's type says nothing: a reshape has it for every size that is not
        known, where another size is zero.
        """
        wanted = ir.DataType.from_numpy(np.dtype(variable.type.dtype))
        if value.dtype is None:
            value.dtype = wanted
        if value.dtype != wanted:
            raise TypeError(
                f"the lowering of {variable.owner.op} returned {value.dtype} for {variable}, "
                f"which is {wanted}"
            )
        if not self.typed or value.producer() is None:
            return
        static = getattr(variable.type, "shape", ())
        known = dims_of(value)
        if known is not None and len(known) != len(static):
            raise TypeError(
                f"the lowering of {variable.owner.op} returned rank {len(known)} for {variable}, "
                f"which has rank {len(static)}"
            )
        sizes = zip_longest(static, known or (), found)
        dims: list[Dim] = [s or k or f for s, k, f in sizes]
        value.shape = ir.Shape(dims)
        if variable.name and value.name is None and not self.build.in_function:
            value.name = self.build.scope.names.unique(variable.name)
        if not self.build.in_function:
            self.build.scope.dims.name_axes(value)


class NestedProblems(Exception):  # noqa: N818  (control flow between converters)
    """Carries the problems found in an inner graph to the converter of the outer one."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("inner graph cannot be converted")
        self.problems = problems


def convert_inner(
    fgraph: AbstractFunctionGraph, build: Builder, inputs: Sequence[ir.Value], *, typed: bool = True
) -> list[ir.Value]:
    """Convert an inner graph into a builder and return the values of its outputs.

    Parameters
    ----------
    fgraph
        Inner graph of an Op.
    build
        Builder that receives the nodes.
    inputs
        One value for each input of the inner graph.
    typed
        Whether the types of the inner variables are those of the values.
    """
    known = zip(fgraph.inputs, inputs, strict=True)
    return _converted(fgraph.outputs, fgraph.toposort(), known, GraphConverter(build, typed=typed))


def convert_expressions(
    expressions: Sequence[Variable], build: Builder, known: Mapping[Variable, ir.Value]
) -> list[ir.Value]:
    """Convert expressions that a lowering makes into a builder and return their values.

    Parameters
    ----------
    expressions
        Variables computed from known ones.
    build
        Builder that receives the nodes.
    known
        Values of variables, such as those of the inputs of a node.
    """
    nodes = toposort(expressions, blockers=known)
    return _converted(expressions, nodes, known.items(), GraphConverter(build))


def _converted(
    variables: Sequence[Variable],
    nodes: Iterable[Apply],
    known: Iterable[tuple[Variable, ir.Value]],
    converter: GraphConverter,
) -> list[ir.Value]:
    for variable, value in known:
        converter.add_value(variable, value)
    converter.convert(nodes)
    if converter.problems:
        raise NestedProblems(converter.problems)
    return [converter.value_of(variable) for variable in variables]


def _provenance(node: Apply, line: str) -> dict[str, str]:
    provenance = {OP: str(node.op), NODE: str(id(node))}
    names = [variable.name for variable in node.outputs if variable.name]
    if names:
        provenance[VARIABLE] = ", ".join(names)
    if line:
        provenance[LINE] = line
    loop = loop_of_index(node)
    if loop is not None:
        provenance[LOOP] = loop
    return provenance


def _placeholder(variable: Variable) -> Lowered:
    """Return values of the types that a lowering would have returned for a variable."""
    tensors = [_placeholder_of(type_) for type_ in tensor_types(variable.type)]
    return tensors[0] if len(tensors) == 1 else tensors


def _placeholder_of(type_: Type) -> ir.Value:
    dtype = getattr(type_, "dtype", None)
    # The dtype of a typed list is a type.
    if not isinstance(dtype, str) or dtype.startswith("complex"):
        return ir.Value(type=ir.TensorType(ir.DataType.FLOAT))
    shape = getattr(type_, "shape", ())
    return ir.Value(
        type=ir.TensorType(ir.DataType.from_numpy(np.dtype(dtype))), shape=ir.Shape(shape)
    )


@onnx_funcify.register(OpFromGraph)
def lower_op_from_graph(op: OpFromGraph, node: Apply, build: Builder, *inputs: ir.Value) -> Lowered:
    """Call a model-local function; equal Ops share its definition."""

    def body(inner: Builder, *arguments: ir.Value) -> list[ir.Value]:
        """Compute the inner graph of an OpFromGraph."""
        return convert_inner(op.fgraph, inner, arguments)

    return build.call(
        re.sub(r"\W+", "_", op.name or type(op).__name__),
        body,
        *inputs,
        variant="",
        key=op,
        shapes=[getattr(variable.type, "shape", ()) for variable in op.fgraph.inputs],
        described=Described(
            body if type(op) is OpFromGraph else type(op),
            # PyTensor drops the names of the inner graph; those of the first call stand for them.
            parameters=[variable.name for variable in node.inputs],
        ),
    )


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
