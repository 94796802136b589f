"""Prepare a converted model for a target: fusions, then the legaliser."""

from importlib import import_module

import onnx_ir as ir

from pytensor_onnx.changes import Change
from pytensor_onnx.conversion import Converted
from pytensor_onnx.dispatch.function import decompositions
from pytensor_onnx.graph.scope import ModelScope
from pytensor_onnx.graph.traversal import all_nodes, nodes_of_model
from pytensor_onnx.passes.legaliser.legalise import legalise
from pytensor_onnx.passes.optimizer.keep_apart import keep_apart
from pytensor_onnx.passes.spell_sizes import spell_sizes
from pytensor_onnx.targets import get_profile

_CONVOLUTIONS = ("Conv", "ConvTranspose")


def prepare(
    converted: Converted, target: str, *, assume_finite: bool = False, inline: bool = False
) -> list[Change]:
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
    list of Change
        Changes made for the target, one for each kind of change.

    Raises
    ------
    ValueError
        If there is no target of that name.
    UnsupportedOpError
        If the target cannot run parts of the model.
    """
    model, scope, profile = converted.model, converted.scope, get_profile(target)
    passes = _Passes(model, scope)
    passes.run("fusions.vector_products", "MatMul", "Transpose")
    passes.run("fusions.drop_leading_axes")
    passes.run("fusions.merge_equal")
    passes.run("fusions.share_transposed")
    passes.run("fusions.keep_reduced_axes", "Unsqueeze")
    if passes.run("layout.move_transposes", "Transpose"):
        passes.run("fusions.merge_equal")
    passes.run("fusions.scale_products", "MatMul")
    passes.run("fusions.read_sizes_late", *_CONVOLUTIONS)
    passes.run("fusions.fold_into_conv", *_CONVOLUTIONS)
    if profile.merges_short_images and passes.run("fusions.merge_short_images", *_CONVOLUTIONS):
        passes.run("fusions.merge_equal")
    passes.run("fusions.row_states", "Scan")
    passes.run("fusions.fuse_gemm", "MatMul")
    passes.run("fusions.scale_gemms", "Gemm", "MatMul")
    passes.run("fusions.fuse_relu_clip", "Relu")
    passes.run("fusions.join_vectors")
    passes.run("fusions.split_vectors", "Loop", "Scan")
    passes.run("fusions.results_after_loops", "Scan")
    passes.run("fusions.take_means", "ReduceSum")
    if profile.splits_transposes:
        passes.run("layout.split_transposes", "Transpose")
    changes = legalise(
        model, profile, scope, decompositions=decompositions(), assume_finite=assume_finite
    )
    passes = _Passes(model, scope)
    passes.run("fusions.halve_arguments", "Scan")
    if profile.accelerator is not None:
        from pytensor_onnx.passes.narrowing.narrow_indices import narrow_indices

        changes += narrow_indices(model, profile, scope)
    passes.run("layout.broadcast_numbers")
    changes += keep_apart(model, scope, profile)
    passes.run("fusions.merge_equal")
    if profile.accelerator is not None:
        from pytensor_onnx.passes.placement import describe_placement

        changes += describe_placement(model, profile)
    if inline:
        from pytensor_onnx.passes.inline_functions import inline_functions

        inline_functions(model, scope)
    spell_sizes(model)
    for function in model.functions.values():
        _forget_types(function)
    return changes


class _Passes:
    """Runs passes on a model, each where the model has an operator that it begins at."""

    def __init__(self, model: ir.Model, scope: ModelScope) -> None:
        self._model, self._scope = model, scope
        self._present = self._operators()

    def run(self, module: str, *operators: str) -> int:
        """Import and run a pass if the model has one of its operators, or if it has none.

        Parameters
        ----------
        module
            Module of `pytensor_onnx.passes` with the pass, a function of the same name.
        operators
            Operators without which the pass changes nothing.

        Returns
        -------
        int
            Number of places that it changed.
        """
        if operators and self._present.isdisjoint(operators):
            return 0
        function = module.rpartition(".")[2]
        change = getattr(import_module(f"pytensor_onnx.passes.{module}"), function)
        count: int = change(self._model, self._scope)
        if count:
            self._present = self._operators()
        return count

    def _operators(self) -> set[str]:
        return {node.op_type for node in nodes_of_model(self._model)}


def _forget_types(function: ir.Function) -> None:
    """Drop shapes and types from a function's body, which the runtime infers for each call."""
    for value in (*function.inputs, *(v for node in all_nodes(function) for v in node.outputs)):
        value.shape = None
        value.type = None
