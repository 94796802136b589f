"""Prepare a converted model for a target: fusions, then the legaliser."""

import onnx_ir as ir

from pytensor_onnx.changes import Change
from pytensor_onnx.conversion import Converted
from pytensor_onnx.dispatch.registry.function import decompositions
from pytensor_onnx.graph.traversal import all_nodes, nodes_of_model
from pytensor_onnx.operators.dims import dims_of
from pytensor_onnx.passes.fold_constants import fold_constants
from pytensor_onnx.passes.fusions.drop_axes import drop_leading_axes, keep_reduced_axes
from pytensor_onnx.passes.fusions.fold_into_conv import fold_into_conv
from pytensor_onnx.passes.fusions.fuse_products import (
    fuse_gemm,
    fuse_relu_clip,
    share_transposed,
    vector_products,
)
from pytensor_onnx.passes.fusions.merge_equal import join_vectors, merge_equal, merge_short_images
from pytensor_onnx.passes.inline_functions import inline_functions
from pytensor_onnx.passes.keep_apart import keep_apart
from pytensor_onnx.passes.layout.broadcast_numbers import broadcast_numbers
from pytensor_onnx.passes.layout.move_transposes import move_transposes
from pytensor_onnx.passes.legaliser.legalise import legalise
from pytensor_onnx.passes.legaliser.missing_kernels import check_loops
from pytensor_onnx.passes.lower_opset import lower_opset
from pytensor_onnx.passes.model_pass import Passes
from pytensor_onnx.passes.narrowing import describe_placement, narrow_indices
from pytensor_onnx.passes.node_rules import NodeRules
from pytensor_onnx.passes.spell_sizes import find_sizes, spell_sizes
from pytensor_onnx.targets import Profile


def prepare(
    converted: Converted,
    profile: Profile,
    *,
    assume_finite: bool = False,
    inline: bool = False,
    splits_words: bool = False,
    opset_version: int | None = None,
) -> list[Change]:
    """Fuse nodes of a model, and change it in place so that the target runs it.

    Parameters
    ----------
    converted
        Model as `pytensor_onnx.conversion.convert` returns it.
    profile
        Runtime that the model is for.
    assume_finite
        Whether to leave out the guards against runtimes that drop NaN.
    inline
        Whether to write out the model-local functions where they are called.
    splits_words
        Whether words of random generators are computed by numbers of 16 bits.
    opset_version
        Opset to write the model in, if it is lower than that of the conversion.

    Returns
    -------
    list of Change
        Changes made for the target, one for each kind of change.

    Raises
    ------
    UnsupportedOpError
        If the target cannot run parts of the model.
    """
    model, scope = converted.model, converted.scope
    passes = Passes(model, scope)
    passes.run(NodeRules(vector_products), drop_leading_axes, merge_equal, share_transposed)
    passes.run(NodeRules(keep_reduced_axes))
    if passes.run(move_transposes):
        passes.run(merge_equal)
    passes.run(NodeRules(fold_into_conv, fuse_gemm, fuse_relu_clip))
    if profile.merges_short_images and passes.run(NodeRules(merge_short_images)):
        passes.run(merge_equal)
    passes.run(join_vectors)
    # Ciphers of random generators have it, and little else.
    splits_words &= any(node.op_type == "BitwiseXor" for node in nodes_of_model(model))
    if splits_words:
        passes.run(inline_functions)
        _compute_constants(passes)
    settings = {"assume_finite": assume_finite, "splits_words": splits_words}
    passes.run(legalise.given(profile=profile, decompositions=decompositions(), **settings))
    if profile.folds_constants:
        # Before the guards, which are for the nodes of the file.
        passes.run(inline_functions)
        _compute_constants(passes)
    if profile.accelerator is not None:
        passes.run(narrow_indices.given(profile=profile))
    passes.run(broadcast_numbers, keep_apart.given(profile=profile), merge_equal)
    changes = passes.changes
    if profile.accelerator is not None:
        changes += describe_placement(model, profile)
    is_older = opset_version is not None and opset_version < scope.opset_version
    is_narrow = profile.is_portable and not scope.widens
    wide_functions = _functions_in_float64(model) if is_narrow else []
    before = _count_nodes(model) if is_older else 0
    # Axes that are operands of a function become attributes.
    writes_out = profile.is_portable and not profile.keeps_functions
    if (inline or writes_out or is_older) and passes.run(inline_functions) and is_older:
        text = f"functions written out for opset {opset_version}: {before} nodes became"
        changes.append(Change(f"{text} {_count_nodes(model)}"))
    if profile.is_portable:
        _compute_constants(passes)
        # Short loops are written out by now.
        check_loops(model, profile)
    if is_narrow and (count := sum(map(_is_wide, nodes_of_model(model)))):
        names = ", ".join(wide_functions) or "operators"
        changes.append(Change(f"float64 kept within {names}", count))
    if is_older:
        passes.run(lower_opset.given(version=opset_version))
    passes.run(spell_sizes)
    if profile.is_portable:
        _forget_sizes(model)
    _keep_operands(model)
    for function in model.functions.values():
        _forget_types(function)
        _drop_unused_domains(function)
    return changes


def _count_nodes(model: ir.Model) -> int:
    return sum(1 for _ in nodes_of_model(model))


def _functions_in_float64(model: ir.Model) -> list[str]:
    """Return the names of the functions that compute in float64, without the dtypes."""
    functions = (f for f in model.functions.values() if any(map(_is_wide, all_nodes(f))))
    return sorted({f.name.partition("_float")[0] for f in functions})


def _is_wide(node: ir.Node) -> bool:
    """Return whether a node computes in float64."""
    return node.op_type != "Cast" and any(v.dtype == ir.DataType.DOUBLE for v in node.outputs)


def _compute_constants(passes: Passes) -> None:
    """Compute constants and sizes, and drop the choices that they decide."""
    passes.run(fold_constants, merge_equal)
    while passes.run(find_sizes) and passes.run(fold_constants):
        passes.run(merge_equal)


def _forget_sizes(model: ir.Model) -> None:
    """Drop the names of sizes within a model: a runtime infers them from those of inputs."""
    outer = {*model.graph.inputs, *model.graph.outputs, *model.graph.initializers.values()}
    for value in (v for node in all_nodes(model.graph) for v in node.outputs):
        if value not in outer and not all(isinstance(d, int) for d in dims_of(value) or ()):
            value.shape = None


def _keep_operands(model: ir.Model) -> None:
    """Drop the shapes of results that ONNX Runtime computes in the place of their operands.

    Normalizer reads the signs of its operand after it has written the squares. The runtime shares
    memory where it knows that shapes are equal.
    """
    outputs = set(model.graph.outputs)
    for node in nodes_of_model(model):
        if node.op_type == "Normalizer" and not outputs.issuperset(node.outputs):
            node.outputs[0].shape = None


def _forget_types(function: ir.Function) -> None:
    """Drop shapes and types from a function's body, which the runtime infers for each call."""
    for value in (*function.inputs, *(v for node in all_nodes(function) for v in node.outputs)):
        value.shape = None
        value.type = None


def _drop_unused_domains(function: ir.Function) -> None:
    """Drop the operator sets of our functions from a body that calls none of them."""
    used = {"", *(node.domain for node in all_nodes(function))}
    for domain in function.opset_imports.keys() - used:
        del function.opset_imports[domain]
