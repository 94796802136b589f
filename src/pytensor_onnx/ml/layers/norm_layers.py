"""Replace normalisation layers of pytensor-ml and their gradients by operations of `nn`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.ml.layers.transposed import to_first, to_last
from pytensor_onnx.rules import rewrites_graphs

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
    from pytensor_onnx.ops.networks.batch_norm import BatchNorm

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
