"""Forms of nodes that the runtime's optimizer leaves alone."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.traversal import bodies_of, nodes_of_model
from pytensor_onnx.operators.dims import dims_of, is_positive
from pytensor_onnx.operators.inference import attribute_of
from pytensor_onnx.passes.layout.layout_rules import Perm, may_move
from pytensor_onnx.passes.layout.walk import is_transpose, perm_of
from pytensor_onnx.passes.matching import (
    constant_of,
    is_constant,
    is_operator,
    producer_of,
    required,
)
from pytensor_onnx.passes.node_walk import Form, emit_alike

_KEEPS_INTEGERS = frozenset(
    {"Add", "Cast", "Expand", "Gather", "Mul", "ReduceProd", "Reshape", "Squeeze", "Unsqueeze"}
)
_TYPED_OPERAND = {"Where": 1}


class Inlined:
    """Sources and users of values in the graph that a runtime optimizes.

    The runtime inlines function calls and the selected branch of an If with a constant condition,
    and drops each Identity.

    Parameters
    ----------
    model
        Model whose calls stay unchanged.

    Attributes
    ----------
    folded
        Constants, sizes, and values that a runtime may fold from them. It may know more sizes than
        the model, for instance from session options.
    """

    def __init__(self, model: ir.Model) -> None:
        self._before: dict[ir.Value, list[ir.Value]] = defaultdict(list)
        self._after: dict[ir.Value, list[ir.Value]] = defaultdict(list)
        self._calls: set[ir.Node] = set()
        nodes = list(nodes_of_model(model))
        for node in nodes:
            function = model.functions.get(node.op_identifier()) if node.domain else None
            if function is not None:
                self._calls.add(node)
                # A call may omit the last arguments.
                self._join(zip(node.inputs, function.inputs, strict=False))
                self._join(zip(function.outputs, node.outputs, strict=False))
            elif is_operator(node, "If"):
                for branch in bodies_of(node):
                    self._join(zip(branch.outputs, node.outputs, strict=True))
            elif is_operator(node, "Identity"):
                self._join(zip(node.inputs, node.outputs, strict=True))
        self.folded = self._folded(nodes)
        self._whole: dict[ir.Value, bool] = {}
        self._folded_origins: dict[ir.Value, list[ir.Value]] = {}
        self._leaves: dict[ir.Value, frozenset[ir.Value]] = {}

    def _join(self, pairs: Iterator[tuple[ir.Value | None, ir.Value]]) -> None:
        for value, same in pairs:
            if value is not None:
                self._before[same].append(value)
                self._after[value].append(same)

    def _folded(self, nodes: Sequence[ir.Node]) -> set[ir.Value]:
        values = {v for node in nodes for v in (*node.inputs, *node.outputs) if v is not None}
        folded: set[ir.Value] = set()
        # The default of an input is no constant: a caller may pass another value.
        constants = set(filter(is_constant, values))
        waiting = [*constants, *(v for v in values if _is_size(v) and v not in constants)]
        while waiting:
            folded.update(new := _reached(waiting.pop(), self._after))
            for node in {user for v in new for user in v.consumers()} - self._calls:
                # A body may use any value of the graph around it.
                if all(v is None or v in folded for v in node.inputs) and not bodies_of(node):
                    waiting += [v for v in node.outputs if v not in folded]
        return folded

    def folds_with(self, value: ir.Value, other: ir.Value) -> bool:
        """Return whether a runtime that folds one value has folded the other as well.

        A value folds once its leaves are known: the other folds too if its leaves are a subset.
        """
        return other in self.folded and self._leaves_of(other) <= self._leaves_of(value)

    def _leaves_of(self, value: ir.Value) -> frozenset[ir.Value]:
        """Return the sizes, parameters and results of calls that make a folded value."""
        waiting = [value]
        while waiting:
            last = waiting[-1]
            operands = self._folded_operands(last)
            missing = [v for v in operands if v not in self._leaves]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            is_leaf = not operands and last.const_value is None
            known = [self._leaves[v] for v in operands]
            self._leaves[last] = frozenset([last]) if is_leaf else frozenset().union(*known)
        return self._leaves[value]

    def _folded_operands(self, value: ir.Value) -> list[ir.Value]:
        """Return the operands of the operator that makes a value, none for a leaf or a constant."""
        node = value.producer()
        if value.const_value is not None or node is None or node in self._calls:
            return []
        if _is_size(value) or bodies_of(node):
            return []
        return [v for v in node.inputs if v is not None]

    def origins(self, value: ir.Value) -> list[ir.Value]:
        """Return the possible sources of a value: itself, or values of callers or functions."""
        return [v for v in _reached(value, self._before) if v not in self._before]

    def folded_origins(self, value: ir.Value) -> list[ir.Value]:
        """Return the possible sources of a value that are folded.

        A parameter of a function has a source for each call, and few of them are folded.
        """
        if value not in self._folded_origins:
            found = [v for v in self.origins(value) if v in self.folded]
            self._folded_origins[value] = found
        return self._folded_origins[value]

    def users(self, value: ir.Value) -> list[ir.Node]:
        """Return the nodes other than calls that may use a value."""
        values = _reached(value, self._after)
        return [node for v in values for node in v.consumers() if node not in self._calls]

    def dtype(self, value: ir.Value) -> ir.DataType | None:
        """Return the dtype of a folded value; in functions, the dtype of its sources."""
        waiting, seen = [value], {value}
        while waiting:
            for origin in self.origins(waiting.pop()):
                dtype = _own_dtype(origin)
                if dtype is not None:
                    return dtype
                node = origin.producer()
                of_type = () if node is None else node.inputs[_TYPED_OPERAND.get(node.op_type, 0) :]
                new = [v for v in of_type[:1] if v is not None and v not in seen]
                seen.update(new)
                waiting += new
        return None

    def is_integral(self, value: ir.Value) -> bool:
        """Return whether a folded value consists of integers, or is the square root of an integer.

        Such a value is exactly 0 or 1, or far from both.
        """
        roots = [v.producer() for v in self.origins(value)]
        if len(roots) == 1 and roots[0] is not None and roots[0].op_type == "Sqrt":
            return all(v is not None and self._is_whole(v) for v in roots[0].inputs)
        return self._is_whole(value)

    def _is_whole(self, value: ir.Value) -> bool:
        if value not in self._whole:
            self._whole[value] = False
            self._whole[value] = all(self._makes_whole(v) for v in self.origins(value))
        return self._whole[value]

    def _makes_whole(self, value: ir.Value) -> bool:
        dtype, node = self.dtype(value), value.producer()
        if dtype is not None and dtype.is_integer():
            return True
        if node is None or node.domain or node.op_type not in _KEEPS_INTEGERS:
            return False
        return all(v is not None and self._is_whole(v) for v in node.inputs)


def _is_size(value: ir.Value) -> bool:
    return producer_of(value, "Shape", "Size") is not None


def _own_dtype(value: ir.Value) -> ir.DataType | None:
    """Return the dtype of a value, from the value or its node."""
    if value.dtype is not None:
        return value.dtype
    if value.const_value is not None:
        return value.const_value.dtype
    node = value.producer()
    if node is not None and node.op_type == "Cast":
        return ir.DataType(node.attributes["to"].as_int())
    return ir.DataType.INT64 if _is_size(value) else None


def _reached(value: ir.Value, edges: Mapping[ir.Value, list[ir.Value]]) -> list[ir.Value]:
    reached, waiting = {value: None}, [value]
    while waiting:
        new = [v for v in edges.get(waiting.pop(), ()) if v not in reached]
        reached.update(dict.fromkeys(new))
        waiting += new
    return list(reached)


# Guards that hide an operand from the runtime's optimizer, by a Max of the operand alone.
#
# - A Relu becomes part of the bounds of a Clip after it, which must be float32 for that: a model in
#   float64 is refused. `fuse_relu_clip` fuses them where they are side by side.
# - A Pad becomes part of a MaxPool. It inserts zeros, which are larger than negative values; the
#   padding of a MaxPool is minus infinity.
# - A Gather by a Range becomes a Slice. It ends where the axis does, and counts a negative end from
#   there: indices beyond the size are no error, and indices from -2 to 1 select nothing.


def bounded_relu_form(node: ir.Node, inlined: Inlined) -> Form | None:
    """Return a guarded form of a Clip after a Relu, None for other nodes."""
    if len(node.inputs) != 3 or node.outputs[0].dtype not in (None, ir.DataType.DOUBLE):
        return None
    x, *bounds = ([] if v is None else inlined.origins(v) for v in node.inputs)
    is_fused = any(producer_of(v, "Relu") for v in x) and all(
        any(v in inlined.folded for v in bound) for bound in bounds
    )
    return _HIDE_FIRST if is_fused else None


def padded_pool_form(node: ir.Node, inlined: Inlined) -> Form | None:
    """Return a guarded form of a MaxPool after a Pad, None for other nodes."""
    origins = inlined.origins(required(node.inputs[0]))
    return _HIDE_FIRST if any(_is_fused_pad(v, inlined) for v in origins) else None


def range_form(node: ir.Node, inlined: Inlined) -> Form | None:
    """Return a guarded form of a Gather by a Range, None for other nodes."""
    makers = (producer_of(origin, "Range") for origin in inlined.origins(required(node.inputs[1])))
    return _HIDE_SECOND if any(makers) else None


def _is_fused_pad(value: ir.Value, inlined: Inlined) -> bool:
    """Return whether a value is a Pad with a single use, which a runtime may fuse."""
    node = producer_of(value, "Pad")
    if node is None or len(inlined.users(value)) > 1:
        return False
    return attribute_of(node, "mode") == "constant"


def _hide(build: Builder, node: ir.Node, position: int) -> list[ir.Value]:
    operands = [build.Max(x) if i == position else x for i, x in enumerate(node.inputs)]
    return emit_alike(build, node, operands)


_HIDE_FIRST, _HIDE_SECOND = (partial(_hide, position=position) for position in (0, 1))


# Guard arithmetic with constants near zero or one, which a runtime drops.
#
# ONNX Runtime drops additions of 0 and multiplications by 1, after rounding the constant to
# float32: in float64, `x + 1e-300` becomes `x`, and `log` of it minus infinity. A Sum of two
# operands is left alone, and so is a product with the negative constant, whose negative is exact.

NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1}
"""Neutral elements of the operators."""


def near_identity_form(node: ir.Node, inlined: Inlined) -> Form | None:
    """Return a guarded form of an Add, Sub, Mul or Div, None for nodes without the defect.

    Parameters
    ----------
    node
        Node of one of these operators.
    inlined
        The model as a runtime inlines it.
    """
    form = _sum if node.op_type in ("Add", "Sub") else _product
    for position in (0, 1) if node.op_type in ("Add", "Mul") else (1,):
        value, other = required(node.inputs[position]), required(node.inputs[1 - position])
        if _is_dropped(value, other, NEUTRAL[node.op_type], inlined):
            return partial(form, position=position)
    return None


def _is_dropped(value: ir.Value, other: ir.Value, neutral: int, inlined: Inlined) -> bool:
    """Return whether a constant becomes the neutral element only by rounding to float32."""
    origins = [v for v in inlined.folded_origins(value) if inlined.dtype(v) == ir.DataType.DOUBLE]
    if any(_rounds_to(v, neutral) for v in origins):
        return True
    # Where the runtime folds both operands, it folds the node before it looks for identities.
    if inlined.folds_with(value, other):
        return False
    return any(not is_constant(v) and not inlined.is_integral(v) for v in origins)


def _rounds_to(value: ir.Value, neutral: int) -> bool:
    constant = constant_of(value)
    if constant is None or constant.size != 1:
        return False
    number = constant.item()
    with np.errstate(over="ignore"):
        return bool(number != neutral and np.float32(number) == neutral)


def _sum(build: Builder, node: ir.Node, position: int) -> ir.Value:
    """Add by a Sum; a difference is a sum with the negative constant."""
    left, right = map(required, node.inputs)
    if node.op_type == "Add":
        return build.Sum(left, right)
    return build.Sum(left, _negative(build, right))


def _product(build: Builder, node: ir.Node, position: int) -> ir.Value:
    """Multiply or divide by the negative constant, and negate the result."""
    operands = list(map(required, node.inputs))
    constant = operands[position]
    if is_constant(constant):
        operands[position] = _negative(build, constant)
        return build.Neg(build.op(node.op_type, *operands))
    # The sign of zero matters: a division by it is infinite.
    zero, one = np.float64(0), np.float64(1)
    is_negative = build.Or(build.Less(constant, zero), build.Less(build.Div(one, constant), zero))
    sign = build.Where(is_negative, one, -one)
    operands[position] = build.Neg(build.Abs(constant))
    return build.Mul(build.op(node.op_type, *operands), sign)


def _negative(build: Builder, value: ir.Value) -> ir.Value:
    array = constant_of(value)
    return build.Neg(value) if array is None else build.constant(-array)


# Guard matrix products against fusions with factors and Transposes by a runtime.
#
# ONNX Runtime fuses a MatMul and a constant factor before or after it, which becomes a float32
# attribute: for a float64 product a factor of 0.1 is off by 1.5e-8, a factor of 0.5 is exact. The
# attribute has to be finite, or the model is refused. The runtime also fuses a Transpose of the
# batch before a MatMul, and then divides by the number of rows, which ends the process for zero
# rows. It sees all this through the functions of the model, which it inlines first. A Gemm is left
# alone, and so is a product with a Max of one operand in between.

LARGEST_EXPONENT = 16
"""Up to which a power of two is exact as a float32, even if it is multiplied by a few others."""


def product_form(node: ir.Node, inlined: Inlined) -> Form | None:
    """Return a guarded form of a MatMul, None for nodes without the defect."""
    if _is_of_integers(node):
        return None
    apart = _kept_apart(node, inlined)
    return partial(_protected, apart=apart) if any(apart) else None


def transposed_product_form(node: ir.Node, inlined: Inlined) -> Form | None:
    """Return a guarded form of a float64 MatMul after a Transpose, None for others."""
    operands = [required(value) for value in node.inputs]
    if _is_of_integers(node) or inlined.dtype(operands[0]) not in (None, ir.DataType.DOUBLE):
        return None
    transposed = [
        any(is_operator(v.producer(), "Transpose") for v in inlined.origins(x)) for x in operands
    ]
    left, right, result_apart = _kept_apart(node, inlined)
    apart = (left or transposed[0], right or transposed[1], result_apart)
    return partial(_protected, apart=apart) if any(transposed) else None


def _kept_apart(node: ir.Node, inlined: Inlined) -> tuple[bool, bool, bool]:
    """Return whether the operands and the result of a product need a guard."""
    left, right = (
        x is not None
        and (any(_is_unfit(n, inlined) for n in _makers(x, inlined)) or _moves_rows(x, inlined))
        for x in node.inputs
    )
    return left, right, any(_is_unfit(n, inlined) for n in inlined.users(node.outputs[0]))


def _protected(build: Builder, node: ir.Node, apart: tuple[bool, bool, bool]) -> ir.Value:
    if all(x is not None and x.shape is not None and len(x.shape) == 2 for x in node.inputs):
        return build.Gemm(*node.inputs)
    *operands, result_apart = apart
    result = build.MatMul(
        *(build.Max(x) if own else x for x, own in zip(node.inputs, operands, strict=True))
    )
    return build.Max(result) if result_apart else result


def _is_of_integers(node: ir.Node) -> bool:
    """Return whether a product is known to be of integers; dtypes in functions are unknown."""
    dtypes = [v.dtype for v in (*node.inputs, *node.outputs) if v is not None]
    return any(dtype is not None and dtype.is_integer() for dtype in dtypes)


def _makers(value: ir.Value, inlined: Inlined) -> Iterator[ir.Node]:
    """Yield the possible producers of a value, in place of a Transpose those before it."""
    seen: set[ir.Value] = set()
    waiting: list[ir.Value | None] = [value]
    while waiting:
        after = waiting.pop()
        origins = [] if after is None else [v for v in inlined.origins(after) if v not in seen]
        seen.update(origins)
        for node in (v.producer() for v in origins):
            if is_operator(node, "Transpose"):
                waiting.append(node.inputs[0])
            elif node is not None:
                yield node


def _moves_rows(value: ir.Value, inlined: Inlined) -> bool:
    """Return whether an axis of possibly zero size may have been moved behind the batch.

    A runtime merges several Transposes, and moves more distant ones too.
    """
    makers = [origin.producer() for origin in inlined.origins(value)]
    waiting = [(n, perm_of(n)) for n in makers if n is not None and is_transpose(n)]
    seen = set(waiting)
    while waiting:
        node, perm = waiting.pop()
        if _moves_first(perm) and _may_have_none(node.inputs[0]):
            return True
        for before in _transposes_before(node, inlined):
            own = perm_of(before)
            if len(own) != len(perm):
                return True
            total = before, tuple(own[p] for p in perm)
            if total not in seen:
                seen.add(total)
                waiting.append(total)
    return False


def _moves_first(perm: Perm) -> bool:
    *batch, last = range(1, len(perm))
    return perm in ((*batch, 0, last), (*batch, last, 0))


def _may_have_none(value: ir.Value | None) -> bool:
    """Return whether the first axis of a value may have size zero."""
    dims = dims_of(value)
    return dims is None or not is_positive(dims[0])


def _transposes_before(node: ir.Node, inlined: Inlined) -> Iterator[ir.Node]:
    """Yield the Transposes that may be merged into one."""
    seen: set[ir.Value] = set()
    waiting = list(node.inputs)
    while waiting:
        value = waiting.pop()
        origins = [] if value is None else [v for v in inlined.origins(value) if v not in seen]
        seen.update(origins)
        for maker in (v.producer() for v in origins):
            if maker is None or maker.domain:
                continue
            if is_transpose(maker):
                yield maker
            elif may_move(maker.op_type):
                waiting += maker.inputs


def _is_unfit(node: ir.Node, inlined: Inlined) -> bool:
    """Return whether a node multiplies or divides by a number that is inexact as an attribute."""
    if not is_operator(node, "Mul", "Div"):
        return False
    factors = node.inputs if node.op_type == "Mul" else node.inputs[1:]
    origins = [v for x in factors if x is not None for v in inlined.folded_origins(x)]
    return any(not _fits(v, node.op_type, inlined) for v in origins)


def _fits(factor: ir.Value, op_type: str, inlined: Inlined) -> bool:
    """Return whether a factor is exact as a float32, if it is fused."""
    number = constant_of(factor)
    if number is None:
        dtype = inlined.dtype(factor)
        return dtype not in (None, ir.DataType.DOUBLE) and inlined.is_integral(factor)
    if number.size != 1:
        return True
    if number.dtype == np.float64:
        mantissa, exponent = np.frexp(number)
        return bool(
            (np.abs(mantissa) == 0.5).all() and (np.abs(exponent) <= LARGEST_EXPONENT).all()
        )
    number = number.astype("float32")
    with np.errstate(divide="ignore", over="ignore"):
        return bool(np.isfinite(number if op_type == "Mul" else 1 / number).all())
