"""Guard matrix products against fusions with factors and Transposes by a runtime.

ONNX Runtime fuses a MatMul and a constant factor before or after it, which becomes a float32
attribute: for a float64 product a factor of 0.1 is off by 1.5e-8, a factor of 0.5 is exact. The
attribute has to be finite, or the model is refused. The runtime also fuses a Transpose of the batch
before a MatMul, and then divides by the number of rows, which ends the process for zero rows. It
sees all this through the functions of the model, which it inlines first. A Gemm is left alone, and
so is a product with a Max of one operand in between.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.graph.dims import dims_of, is_positive
from pytensor_onnx.passes.layout.layout_rules import may_move
from pytensor_onnx.passes.layout.moved import Perm
from pytensor_onnx.passes.layout.walk import is_transpose, perm_of
from pytensor_onnx.passes.matching import constant_of, is_operator, required
from pytensor_onnx.passes.node_walk import Form
from pytensor_onnx.passes.optimizer_guards.inlined import Inlined

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
