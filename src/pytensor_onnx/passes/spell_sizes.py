"""Sizes found, and computed sizes spelled out."""

from collections.abc import Mapping

import onnx_ir as ir

from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import all_nodes
from pytensor_onnx.operators.dims import ComputedSize, Dim, Dims, dims_of, is_plain
from pytensor_onnx.passes.model_pass import model_pass

_SPELLED = "pytensor_onnx.computed_sizes"


@model_pass(
    family="shape",
    purpose="conversion",
    identity="size k + 1 = its text",
    ensures="sizes are texts, unique by name",
)
def spell_sizes(model: ir.Model, scope: ModelScope) -> int:
    """Replace each computed size by its text, in brackets if a user's name reads alike.

    The model keeps the sizes by their texts for as long as it is in memory (`computed_sizes_of`).

    Examples
    --------
    >>> from pytensor_onnx.operators.dims import sum_dim
    >>> x = ir.val("x", dtype=ir.DataType.FLOAT, shape=("k+1", sum_dim(["k", 1])))
    >>> model = ir.Model(ir.Graph([x], [], nodes=[]), ir_version=10)
    >>> Passes(model, ModelScope(21)).run(spell_sizes)
    True
    >>> dims_of(x)
    ('k+1', '(k+1)')
    """
    graph = model.graph
    outer = [dims_of(value) or () for value in (*graph.inputs, *graph.outputs)]
    names = {d for dims in outer for d in dims if _is_name(d) and not is_plain(str(d))}
    values = (*graph.inputs, *(v for node in all_nodes(graph) for v in node.outputs))
    spelled: dict[str, ComputedSize] = {}
    for value in values:
        dims: Dims = dims_of(value) or ()
        if any(isinstance(d, ComputedSize) for d in dims):
            texts = [_spelled(d, names) for d in dims]
            spelled |= {
                str(t): d for t, d in zip(texts, dims, strict=True) if isinstance(d, ComputedSize)
            }
            value.shape = ir.Shape(texts)
    keep_computed_sizes(model, spelled)
    return len(spelled)


def keep_computed_sizes(model: ir.Model, sizes: Mapping[str, ComputedSize]) -> None:
    """Keep the computed sizes of a model in memory, by their texts."""
    model.meta[_SPELLED] = sizes


def computed_sizes_of(model: ir.Model) -> Mapping[str, ComputedSize]:
    """Return the computed sizes of a model that was prepared, by their texts."""
    return model.meta.get(_SPELLED, {})


def _is_name(dim: Dim) -> bool:
    return isinstance(dim, str) and not isinstance(dim, ComputedSize)


def _spelled(dim: Dim, names: set[Dim]) -> Dim:
    if not isinstance(dim, ComputedSize):
        return dim
    text = str(dim)
    while text in names:
        text = f"({text})"
    return text


@model_pass(
    family="structure",
    purpose="conversion",
    identity="sizes of f(x) follow from those of x",
    requires="a file for all runtimes, functions written out",
    ensures="known sizes of values within the model",
    measured="docs/reference/targets.md",
)
def find_sizes(model: ir.Model, scope: ModelScope) -> int:
    """Let ONNX's shape inference find sizes, which functions that are written out lack.

    Returns
    -------
    int
        How many values have more known sizes than before.
    """
    from onnx_ir.passes.common import ShapeInferencePass

    outer = {value: value.shape for value in (*model.graph.inputs, *model.graph.outputs)}
    values = [value for node in all_nodes(model.graph) for value in node.outputs]
    before = list(map(_known, values))
    ShapeInferencePass(check_type=False, strict_mode=False, data_prop=True)(model)
    for value, shape in outer.items():
        value.shape = shape
    return sum(_known(v) > count for v, count in zip(values, before, strict=True))


def _known(value: ir.Value) -> int:
    """Return how much is known of the sizes of a value: its rank, and the axes of known size."""
    if value.shape is None:
        return 0
    return 1 + sum(isinstance(size, int) for size in value.shape)
