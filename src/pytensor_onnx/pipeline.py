"""Prepare a converted model for a target: fusions, then the legaliser."""

import onnx_ir as ir

from pytensor_onnx.conversion import Converted
from pytensor_onnx.dispatch.function import decompositions
from pytensor_onnx.passes import (
    broadcast_numbers,
    describe_placement,
    drop_leading_axes,
    fold_into_conv,
    fuse_gemm,
    fuse_relu_clip,
    halve_arguments,
    inline_functions,
    join_vectors,
    keep_apart,
    keep_reduced_axes,
    legalise,
    merge_equal,
    merge_short_images,
    move_transposes,
    narrow_indices,
    read_sizes_late,
    results_after_loops,
    row_states,
    scale_gemms,
    scale_products,
    share_transposed,
    spell_sizes,
    split_transposes,
    split_vectors,
    take_means,
    vector_products,
)
from pytensor_onnx.targets import get_profile


def prepare(
    converted: Converted, target: str, *, assume_finite: bool = False, inline: bool = False
) -> list[str]:
    """Fuse nodes of a model, and change it in place so that the target runs it.

    Parameters
    ----------
    converted
        Model as `pytensor_onnx.conversion.convert` returns it.
    target
        Name of a profile.
    assume_finite
        Whether to leave out the guards against runtimes that drop NaN.
    inline
        Whether to write out the model-local functions where they are called.

    Returns
    -------
    list of str
        Changes made for the target, one line for each kind of change.

    Raises
    ------
    ValueError
        If there is no target of that name.
    UnsupportedOpError
        If the target cannot run parts of the model.
    """
    model, scope, profile = converted.model, converted.scope, get_profile(target)
    vector_products(model, scope)
    drop_leading_axes(model, scope)
    merge_equal(model, scope)
    share_transposed(model, scope)
    keep_reduced_axes(model, scope)
    if move_transposes(model, scope):
        merge_equal(model, scope)
    scale_products(model, scope)
    read_sizes_late(model, scope)
    fold_into_conv(model, scope)
    if profile.merges_short_images and merge_short_images(model, scope):
        merge_equal(model, scope)
    row_states(model, scope)
    fuse_gemm(model, scope)
    scale_gemms(model, scope)
    fuse_relu_clip(model, scope)
    join_vectors(model, scope)
    split_vectors(model, scope)
    results_after_loops(model, scope)
    take_means(model, scope)
    if profile.splits_transposes:
        split_transposes(model, scope)
    changes = legalise(
        model, profile, scope, decompositions=decompositions(), assume_finite=assume_finite
    )
    halve_arguments(model, scope)
    changes += narrow_indices(model, profile, scope)
    broadcast_numbers(model, scope)
    changes += keep_apart(model, scope, profile)
    merge_equal(model, scope)
    changes += describe_placement(model, profile)
    if inline:
        inline_functions(model, scope)
    spell_sizes(model)
    for function in model.functions.values():
        _forget_types(function)
    return changes


def _forget_types(function: ir.Function) -> None:
    """Drop shapes and types from a function's body, which the runtime infers for each call."""
    for value in (*function.inputs, *(v for node in function.all_nodes() for v in node.outputs)):
        value.shape = None
        value.type = None
