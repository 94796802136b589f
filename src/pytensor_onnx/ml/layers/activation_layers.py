"""Activations, attention and normalisations of pytensor-ml.

In float64 they are left as written: runtimes lack the operators. An expression is also left if a
part of it has other uses, such as its gradient, and is therefore computed anyway.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph, SymbolicOp
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar import basic as ps, math as psm
from pytensor.tensor.rewriting.basic import elemwise_of
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.ml.layers.spatial import to_first, to_last
from pytensor_onnx.rewriting.engine.predicates import elementwise, number_of, only_client
from pytensor_onnx.rules import rewrites_graphs, rewrites_nodes


@rewrites_nodes(
    [elemwise_of(ps.Mul | ps.Switch)],
    family="networks",
    purpose="size",
    identity="x * sigmoid(x) = Swish(x), and its kind",
    requires="float32 or float16, and no part with other uses",
    ensures="equal also for NaN and infinities",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def name_activation(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace an expression by an operator with equal results, also for NaN and infinities."""
    old = node.outputs[0]
    if old.type.dtype != "float32":
        return None
    recognise = _gelu if isinstance(node.op.scalar_op, ps.Mul) else _choice
    new = recognise(fgraph, node)
    if new is None or new.type != old.type:
        return None
    new.name = old.name
    return [new]


def _choice(fgraph: FunctionGraph, node: Apply) -> Variable | None:
    """Recognise a choice between x and a multiple of x by its sign."""
    condition, positive, other = node.inputs
    test = elementwise(condition)
    if test is None or len(test.inputs) != 2 or not only_client(fgraph, condition):
        return None
    operand, bound = test.inputs
    if number_of(bound) != 0:
        return None
    keeps_nan = isinstance(test.op.scalar_op, ps.LT | ps.LE)
    if keeps_nan:
        positive, other = other, positive
    elif not isinstance(test.op.scalar_op, ps.GT | ps.GE):
        return None
    if positive is not operand:
        return None
    if number_of(other) == 0:
        return pt.maximum(operand, _zero(operand)) if keeps_nan else _thresholded(operand)
    slope = _multiple(other, operand)
    if slope is None or slope <= 0 or not math.isfinite(slope):
        return None
    return _operator("LeakyRelu", operand, alpha=slope)


def _thresholded(x: Variable) -> Variable:
    return _operator("ThresholdedRelu", x, alpha=0.0)


def _gelu(fgraph: FunctionGraph, node: Apply) -> Variable | None:
    """Recognise ``0.5 * x * (1 + erf(x / sqrt(2)))`` and its approximation by tanh."""
    factors = _factors(fgraph, node.outputs[0])
    numbers = [number_of(factor) for factor in factors]
    others = [factor for factor, number in zip(factors, numbers, strict=True) if number is None]
    scale = math.prod(number for number in numbers if number is not None)
    if len(others) != 2 or not _is_close(scale, 0.5, node):
        return None
    for x, gate in (others, others[::-1]):
        inner = _plus_one(gate)
        if inner is None or not (only_client(fgraph, gate) and only_client(fgraph, inner)):
            continue
        function = elementwise(inner)
        if function is None:
            continue
        if isinstance(function.op.scalar_op, psm.Erf):
            if _is_close(_multiple(function.inputs[0], x), math.sqrt(0.5), node):
                return _operator("Gelu", x)
        elif isinstance(function.op.scalar_op, ps.Tanh) and _is_cubic(function.inputs[0], x, node):
            return _operator("Gelu", x, approximate="tanh")
    return None


def _is_cubic(u: Variable, x: Variable, node: Apply) -> bool:
    """Return whether u is ``sqrt(2 / pi) * (x + 0.044715 * x ** 3)``."""
    product = elementwise(u, ps.Mul)
    if product is None or len(product.inputs) != 2:
        return False
    for number, total in (product.inputs, product.inputs[::-1]):
        addition = elementwise(total, ps.Add)
        if not _is_close(number_of(number), math.sqrt(2 / math.pi), node) or addition is None:
            continue
        rest = [term for term in addition.inputs if term is not x]
        if len(addition.inputs) == 2 and len(rest) == 1:
            return _is_close(_multiple_of_cube(rest[0], x), 0.044715, node)
    return False


def _multiple_of_cube(term: Variable, x: Variable) -> float | None:
    product = elementwise(term, ps.Mul)
    if product is None:
        return None
    factor, count = 1.0, 0
    for part in _all_factors(term):
        number, power = number_of(part), elementwise(part, ps.Pow)
        if number is not None:
            factor *= number
        elif part is x:
            count += 1
        elif power is not None and power.inputs[0] is x and number_of(power.inputs[1]) in (2, 3):
            count += int(number_of(power.inputs[1]) or 0)
        else:
            return None
    return factor if count == 3 else None


def _factors(fgraph: FunctionGraph, product: Variable) -> list[Variable]:
    """Return the factors of a product and of its inner products without other uses."""
    found: list[Variable] = []
    for factor in product.owner.inputs:
        is_product = elementwise(factor, ps.Mul) is not None and only_client(fgraph, factor)
        found += _factors(fgraph, factor) if is_product else [factor]
    return found


def _all_factors(product: Variable) -> list[Variable]:
    node = elementwise(product, ps.Mul)
    return [product] if node is None else [f for x in node.inputs for f in _all_factors(x)]


def _plus_one(total: Variable) -> Variable | None:
    addition = elementwise(total, ps.Add)
    if addition is None or len(addition.inputs) != 2:
        return None
    first, second = addition.inputs
    if number_of(first) == 1:
        return second
    return first if number_of(second) == 1 else None


def _multiple(product: Variable, x: Variable) -> float | None:
    """Return the number by which x is multiplied, None for other variables."""
    node = elementwise(product)
    if node is None or len(node.inputs) != 2:
        return None
    first, second = node.inputs
    if isinstance(node.op.scalar_op, ps.TrueDiv):
        divisor = number_of(second)
        return 1 / divisor if first is x and divisor else None
    if isinstance(node.op.scalar_op, ps.Mul):
        return number_of(first) if second is x else number_of(second) if first is x else None
    return None


def _is_close(found: float | None, wanted: float, node: Apply) -> bool:
    tolerance = 4 * float(np.finfo(node.outputs[0].type.dtype).eps)
    return found is not None and math.isclose(found, wanted, rel_tol=tolerance)


def _zero(x: Variable) -> np.ndarray:
    return np.zeros((), x.type.dtype)


def _operator(name: str, x: Variable, **attributes: float | str) -> Variable:
    from pytensor_onnx.ops.networks.activation_ops import Activation

    return Activation(operator=name, attributes=tuple(attributes.items()))(x)


LAYER_CLASS = ("pytensor_ml.layers.attention", "AttentionLayer")


@rewrites_nodes(
    [SymbolicOp],
    family="networks",
    purpose="size",
    identity="attention layer of pytensor-ml = nn.attention(q, k, v)",
    requires="inputs have no other uses",
    measured="benchmarks/NOTES.md, Attention",
)
def attend_as_one(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Replace the layer by the operation, which does not repeat keys and may be one operator.

    The layer takes heads before the length, so models transpose its inputs and its result; the
    operation takes the untransposed arrays. The layer is left alone if its inputs have other uses,
    such as its gradient, which shares intermediate results.
    """
    if (type(node.op).__module__, type(node.op).__qualname__) != LAYER_CLASS:
        return None
    q, k, v, *masks = node.inputs
    heads, fewer = q.type.shape[-3], k.type.shape[-3]
    sizes = q.type.shape[-1], v.type.shape[-1]
    if q.type.ndim != 4 or None in (heads, fewer, *sizes) or v.type.shape[-3] != fewer:
        return None
    if any(mask.type.dtype != q.type.dtype or mask.type.ndim > 4 for mask in masks):
        return None
    scores = (*q.type.shape[:3], k.type.shape[2])
    if len({x.type.shape[0] == 1 for x in (q, k, v)}) > 1 or any(
        _is_repeated(scores, mask) for mask in masks
    ):
        return None
    if any(len(fgraph.clients[x]) > 1 for x in (q, k, v)):
        return None
    from pytensor_onnx.ops.networks.attention_ops import Attention

    attention = Attention(
        q_num_heads=heads,
        kv_num_heads=fewer,
        scale=node.op.scale,
        is_causal=bool(node.op.is_causal),
        ends_together=True,
        softcap=0.0,
        has_mask=bool(masks),
        has_past=False,
    )
    merged = attention(*(_merged(x) for x in (q, k, v)), *masks)
    result = pt.split_dims(merged, shape=(heads, sizes[1]), axis=2).dimshuffle(0, 2, 1, 3)
    result.name = node.outputs[0].name
    return [result]


def _is_repeated(scores: Sequence[int | None], mask: Variable) -> bool:
    """Return whether a mask has several elements along an axis on which the scores have one."""
    sizes = zip(scores[::-1], mask.type.shape[::-1], strict=False)
    return any(size == 1 and other != 1 for size, other in sizes)


def _merged(x: TensorVariable) -> TensorVariable:
    """Merge (batch, heads, length, size) into (batch, length, heads * size)."""
    return pt.join_dims(x.dimshuffle(0, 2, 1, 3), start_axis=2, n_axes=2)


LAYER_MODULE = "pytensor_ml.layers.norm"


@dataclass
class _Form:
    """Operation of `nn` that computes a layer.

    Attributes
    ----------
    op
        The operation.
    x
        The array, channels last.
    parameters
        The other inputs of the operation; an int stands for that input of the layer.
    is_spatial
        Whether the operation takes the array channels first.
    """

    op: Any
    x: Variable
    parameters: list[int | Variable]
    is_spatial: bool = False

    def inputs(self, node: Apply) -> list[Variable]:
        """Return the inputs of the operation."""
        others = [node.inputs[p] if isinstance(p, int) else p for p in self.parameters]
        return [to_first(self.x) if self.is_spatial else self.x, *others]

    def back(self, y: Variable) -> Variable:
        """Transpose a result of the operation to channels last."""
        return to_last(y) if self.is_spatial else y


@rewrites_graphs(
    family="networks",
    purpose="size",
    identity="layer of pytensor-ml = nn.layer_norm, nn.batch_norm, …",
    requires="all of one dtype",
    measured="benchmarks/NOTES.md, Rules that stay, with their gain",
)
def normalise_as_one(fgraph: FunctionGraph) -> None:
    """Replace layers of one dtype, and their gradients."""
    if LAYER_MODULE not in sys.modules:
        return
    for node in fgraph.toposort():
        form = _form(node)
        if form is None:
            continue
        inputs = form.inputs(node)
        result = form.op(*inputs)
        result.name = node.outputs[0].name
        replacements = [(node.outputs[0], form.back(result))]
        for gradient in _gradients(fgraph, node):
            slopes = form.op.pullback(
                inputs, [result], [_first_if(form.is_spatial, gradient.inputs[-1])]
            )
            new = [form.back(slopes[0]), *slopes[1:]]
            for position, slope in zip([0, *form.parameters], new, strict=True):
                if isinstance(position, int):
                    replacements.append((gradient.outputs[position], slope))
        fgraph.replace_all(
            [(old, new) for old, new in replacements if old in fgraph.variables],
            reason="normalise_as_one",
            import_missing=True,
        )


def _form(node: Apply) -> _Form | None:
    if type(node.op).__module__ != LAYER_MODULE:
        return None
    make = _FORMS.get(type(node.op).__qualname__)
    if make is None or len({v.type.dtype for v in (*node.inputs, *node.outputs)}) > 1:
        return None
    return make(node)


def _gradients(fgraph: FunctionGraph, node: Apply) -> list[Apply]:
    """Return the nodes that PyTensor made for the gradient of a layer."""
    known = [*node.inputs, *node.outputs]
    clients = {client for client, _ in fgraph.clients[node.outputs[0]]}
    return [
        client
        for client in clients
        if isinstance(client, Apply)
        and type(client.op) is OpFromGraph
        and client.inputs[:-1] == known
        and len(client.outputs) == len(node.inputs)
    ]


def _first_if(is_spatial: bool, gradient: Variable) -> Variable:
    return to_first(gradient) if is_spatial else gradient


def _layer_norm(node: Apply) -> _Form | None:
    from pytensor_onnx.ops.networks.norm_ops import LayerNorm

    x, affine = node.inputs[0], node.op.affine
    gamma = 2 if affine else _filled(x, 1)
    if gamma is None:
        return None
    op = LayerNorm(n_axes=1, epsilon=float(node.op.epsilon))
    return _Form(op, x, [gamma, 1] if affine else [gamma])


def _rms_norm(node: Apply) -> _Form | None:
    from pytensor_onnx.ops.networks.norm_ops import RMSNorm

    x = node.inputs[0]
    gamma = 1 if node.op.affine else _filled(x, 1)
    if gamma is None:
        return None
    return _Form(RMSNorm(n_axes=1, epsilon=float(node.op.epsilon)), x, [gamma])


def _group_norm(node: Apply) -> _Form | None:
    from pytensor_onnx.ops.networks.norm_ops import GroupNorm

    op = GroupNorm(groups=int(node.op.n_groups), epsilon=float(node.op.epsilon))
    return _Form(op, node.inputs[0], [2, 1] if node.op.affine else [], is_spatial=True)


def _batch_norm(node: Apply) -> _Form | None:
    from pytensor_onnx.ops.networks.norm_ops import BatchNorm

    x = node.inputs[0]
    op = BatchNorm(epsilon=float(node.op.epsilon))
    if node.op.affine:
        return _Form(op, x, [2, 1, 3, 4], is_spatial=True)
    gamma, beta = _filled(x, 1), _filled(x, 0)
    if gamma is None or beta is None:
        return None
    return _Form(op, x, [gamma, beta, 1, 2], is_spatial=True)


def _filled(x: Variable, number: float) -> Variable | None:
    """Return a constant vector over the last axis, None if its size is unknown."""
    size = x.type.shape[-1]
    return None if size is None else pt.constant(np.full(size, number, x.type.dtype))


_FORMS: dict[str, Callable[[Apply], _Form | None]] = {
    "GroupNormLayer": _group_norm,
    "LayerNormLayer": _layer_norm,
    "PredictionBatchNormLayer": _batch_norm,
    "RMSNormLayer": _rms_norm,
}
