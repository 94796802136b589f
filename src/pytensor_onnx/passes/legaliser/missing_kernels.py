"""List the operators of a model without a kernel in a runtime."""

from collections.abc import Iterator

import onnx_ir as ir

from pytensor_onnx.errors import UnsupportedOpError
from pytensor_onnx.graph.signatures import signature, type_of_text
from pytensor_onnx.graph.traversal import nodes_of_model
from pytensor_onnx.targets import Profile, main_type
from pytensor_onnx.targets.schema import MAIN_TYPES

_CONTAINERS = ("If", "Loop", "Scan")


def missing_kernels(model: ir.Model, profile: Profile) -> list[str]:
    """Return the operators that a runtime lacks, with their dtypes, each once.

    Parameters
    ----------
    model
        Model whose values know their dtypes.
    profile
        Kernels and defects of the runtime.

    Examples
    --------
    >>> from pytensor_onnx.targets import get_profile
    >>> text = "m (double[n] x) => (double[n] y) {y = Erf(x)}"
    >>> model = ir.from_onnx_text(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    >>> missing_kernels(model, get_profile("onnxruntime"))
    ['Erf in float64']
    """
    opset = model.graph.opset_imports[""]
    missing = []
    for node in _nodes(model):
        dtype = main_dtype(node, opset)
        if dtype is None or profile.supports(node.op_type, dtype, opset, node.attributes):
            continue
        missing.append(f"{node.op_type} in {dtype.numpy()}")
    return list(dict.fromkeys(missing))


def check_loops(model: ir.Model, profile: Profile) -> None:
    """Raise if a model has loops or choices that a runtime does not run."""
    opset = model.graph.opset_imports[""]
    found = [
        f"- {node.op_type} (node {node.name!r})"
        for node in nodes_of_model(model)
        if not node.domain
        and node.op_type in _CONTAINERS
        and not profile.supports(node.op_type, ir.DataType.FLOAT, opset)
    ]
    if found:
        listing = "\n".join(found)
        raise UnsupportedOpError(
            f"the target {profile.name!r} cannot run these operators:\n{listing}"
        )


def main_dtype(node: ir.Node, opset_version: int) -> ir.DataType | None:
    """Return the dtype by which a table of kernels lists an operator."""
    types = signature(node.op_type, opset_version)
    main = type_of_text(main_type(node.op_type, opset_version))
    if isinstance(main, ir.DataType):
        return main
    for position, value in enumerate(node.inputs):
        if value is not None and types.input_type(position) == main:
            return value.dtype
    if node.op_type not in MAIN_TYPES and node.inputs:
        # The type variable of the first operand stands for one dtype.
        first = types.input_type(0)
        return first if isinstance(first, ir.DataType) else node.outputs[0].dtype
    return node.outputs[0].dtype


def _nodes(model: ir.Model) -> Iterator[ir.Node]:
    for node in nodes_of_model(model):
        if not node.domain and node.op_type not in ("Constant", "If", "Loop", "Scan"):
            yield node
