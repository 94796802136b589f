"""Check an exported model, load it, and compare it with PyTensor."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnx.inliner
import onnx_ir as ir
from pytensor.tensor.basic import Alloc, MakeVector, TensorFromScalar
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.shape import Shape, Shape_i

from pytensor_onnx.errors import PyTensorONNXError, VerificationError
from pytensor_onnx.exporting.verification.comparison import Comparison
from pytensor_onnx.exporting.verification.divergence import Conversion, differences_by_value
from pytensor_onnx.exporting.verification.results import OWN_INPUTS, Verification
from pytensor_onnx.exporting.verification.sampling import (
    ATTEMPTS,
    KINDS,
    LONG_ATTEMPT,
    OTHER_ATTEMPTS,
    TAILS,
    Sample,
)
from pytensor_onnx.graph.weights import is_large, without_weights
from pytensor_onnx.running.session import Session
from pytensor_onnx.user_code import NOT_OF_USERS

_ILL_CONDITIONED_SIZES = 2
_SECONDS_OF_TAILS = 1.0
_ELEMENTWISE = (Elemwise, DimShuffle, CAReduce, Alloc, MakeVector, Shape, Shape_i, TensorFromScalar)


def verify_conversion(
    conversion: Conversion,
    open_session: Callable[[], Session],
    inputs: Sequence[Sequence[Any]] = (),
    state: Mapping[str, np.ndarray] | None = None,
    *,
    values: bool = False,
    tails: Sequence[Sequence[Any]] = (),
) -> Verification:
    """Check a model, load it and compare its results with those of the graph.

    Parameters
    ----------
    conversion
        The model and the graph.
    open_session
        Function that loads the model.
    inputs
        Lists of one array for each input, to compare on each of them; sampled unless given.
    state
        Values of the state by name, where other than those at export.
    values
        Whether to compare all values within the model, too.
    tails
        Further lists of extreme inputs, on which results are compared where PyTensor's are beyond
        doubt.

    Warns
    -----
    UserWarning
        If outputs have no finite value on any inputs, and were not compared, or if the model fails
        on sampled inputs.

    Raises
    ------
    VerificationError
        If the model is refused or its results differ from PyTensor's.
    """
    session, note = checked_session(conversion.model, open_session)
    comparison = compare(conversion, session, inputs, state)
    start = time.perf_counter()
    for arrays in tails if comparison.evidence.is_run else ():
        if time.perf_counter() - start < _SECONDS_OF_TAILS:
            given = conversion.arrays(arrays)
            names = [str(v.name) for v in conversion.inputs]
            comparison.compare_tail(Sample(given, names, "extreme"))
    omitted = comparison.evidence.omitted()
    if omitted:
        text = f"verification: {omitted}; {OWN_INPUTS}"
        warnings.warn(text, UserWarning, skip_file_prefixes=NOT_OF_USERS)
    result = replace(comparison.evidence.result(omitted), note=note)
    if not comparison.evidence.is_run:
        return result
    arrays, narrowing = comparison.arrays, conversion.narrowing
    if narrowing is not None:
        losses = narrowing.losses(arrays, conversion.output_names, comparison.values)
        result = replace(result, losses=tuple(losses))
    if values:
        feed = comparison.feed(arrays)
        found = differences_by_value(conversion, comparison.session, feed)
        result = replace(result, values=found)
    return result


def compare(
    conversion: Conversion,
    session: Session,
    inputs: Sequence[Sequence[Any]] = (),
    state: Mapping[str, np.ndarray] | None = None,
) -> Comparison:
    """Return the comparison of a session with the graph; see `verify_conversion`."""
    comparison = Comparison(conversion, session, state or {})
    for arrays in inputs:
        _compare_on_given(comparison, arrays)
    if not inputs:
        _compare_on_samples(comparison)
    return comparison


def checked_session(model: ir.Model, open_session: Callable[[], Session]) -> tuple[Session, str]:
    """Return the session of a model, and a note of the check, empty if there is none.

    Raises
    ------
    VerificationError
        If the checker or the runtime refuses the model.
    """
    checked = without_weights(model)[0] if is_large(model) else model
    try:
        note = check_model(ir.to_proto(checked))
        return open_session(), note
    except VerificationError:
        raise
    except PyTensorONNXError as error:
        raise VerificationError(str(error)) from error


def _compare_on_given(comparison: Comparison, arrays: Sequence[Any]) -> None:
    conversion = comparison.conversion
    given = Sample(conversion.arrays(arrays), [str(v.name) for v in conversion.inputs])
    if not any(comparison.can_compare(given, by_rewritten) for by_rewritten in (False, True)):
        raise VerificationError(
            f"PyTensor itself fails on these inputs: {comparison.evidence.error}"
        ) from comparison.evidence.error


def _compare_on_samples(comparison: Comparison) -> None:
    """Compare on samples, with the rewritten graph where the graph as written fails on all."""
    for by_rewritten in (False, True):
        if not comparison.evidence.is_run:
            _search(comparison, by_rewritten)


def _search(comparison: Comparison, by_rewritten: bool) -> None:
    """Compare on samples until every output is compared and one sample is well-conditioned."""
    inputs = comparison.conversion.inputs
    accepted: int | None = None
    for kind in KINDS if inputs else KINDS[:1]:
        sizes = ATTEMPTS if kind == KINDS[0] else ATTEMPTS[:2]
        for size in sizes if accepted is None else [accepted]:
            if comparison.can_compare(comparison.sample(size, kind), by_rewritten):
                accepted = size
                break
        if comparison.evidence.is_complete():
            break
    if accepted is not None and not by_rewritten and _is_elementwise(comparison.conversion):
        for kind in TAILS:
            comparison.compare_tail(comparison.sample(accepted, kind))
    if comparison.evidence.refusal and accepted is not None and accepted < LONG_ATTEMPT:
        # The shortest inputs that are not refused may be without a frame.
        comparison.can_compare(comparison.sample(LONG_ATTEMPT), by_rewritten)
    # Outputs that are empty for small inputs, and products that are singular for tall matrices.
    for size in OTHER_ATTEMPTS if inputs and accepted is not None else ():
        if size != accepted and not comparison.evidence.is_complete(_ILL_CONDITIONED_SIZES):
            comparison.can_compare(comparison.sample(size), by_rewritten)


def _is_elementwise(conversion: Conversion) -> bool:
    """Return whether a graph of floats consists of elementwise operations, sums and constants."""
    floats = {"float32", "float64"}
    inputs = conversion.reference.inputs
    return any(getattr(v.type, "dtype", "") in floats for v in inputs) and all(
        isinstance(node.op, _ELEMENTWISE)
        and all(v.type.dtype in floats | {"bool", "int64", "int8"} for v in node.outputs)
        for node in conversion.reference.toposort()
    )


NOTE = (
    "ONNX's shape inference counts a window of {} that starts behind the array, as ceil_mode did "
    "before opset 22; ONNX Runtime does not, and other runtimes may: opset_version=22 avoids it"
)


def check_model(model: onnx.ModelProto | str, name: str = "the model") -> str:
    """Check a model; return a note where the shape inference is known to be wrong, else nothing.

    Before opset 22 it counts windows of a MaxPool in ceil mode that start in the padding behind the
    array, which runtimes leave out.

    Parameters
    ----------
    model
        The model, or the path of a file.
    name
        Its name, for the error.

    Raises
    ------
    VerificationError
        If the checker refuses the model for anything else.

    Examples
    --------
    >>> from onnx import helper
    >>> graph = helper.make_graph([], "g", [], [])
    >>> check_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]))
    ''
    """
    try:
        onnx.checker.check_model(model, full_check=True)
        return ""
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        pools = [] if isinstance(error, onnx.checker.ValidationError) else _wrong_pools(model)
        if not pools:
            raise VerificationError(f"the ONNX checker refuses {name}: {error}") from error
        return NOTE.format(" and ".join(pools))


def _wrong_pools(model: onnx.ModelProto | str) -> list[str]:
    """Return the pools whose windows the inference counts wrongly, none if more is wrong.

    With the padding of their windows in place of ceil mode the model must be right.
    """
    if isinstance(model, str):
        model = onnx.load(model, load_external_data=False)
    copy = onnx.inliner.inline_local_functions(model)
    changed = []
    for node in _nodes(copy.graph):
        if node.op_type == "MaxPool" and not node.domain and _ints(node, "ceil_mode", 0):
            inferred = onnx.shape_inference.infer_shapes(copy).graph
            values = (*inferred.value_info, *inferred.input, *inferred.output)
            dims: Any = next(
                (v.type.tensor_type.shape.dim for v in values if v.name == node.input[0]), []
            )
            pads = _floored_pads(node, [d.dim_value for d in dims][2:])
            if pads is not None:
                kept = [a for a in node.attribute if a.name not in ("ceil_mode", "pads")]
                del node.attribute[:]
                node.attribute.extend([*kept, onnx.helper.make_attribute("pads", pads)])
                changed.append(node.name or "MaxPool")
    try:
        onnx.checker.check_model(copy, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return []
    return changed


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _nodes(body)


def _floored_pads(node: onnx.NodeProto, sizes: list[int]) -> list[int] | None:
    """Return padding with which no window starts behind the array, None if none does."""
    window = _ints(node, "kernel_shape", [])
    rank = len(window)
    if rank != len(sizes) or not all(sizes):
        return None
    stride, dilation = (_ints(node, name, [1] * rank) for name in ("strides", "dilations"))
    pads, is_wrong = list(_ints(node, "pads", [0] * 2 * rank)), False
    for axis, (size, step) in enumerate(zip(sizes, stride, strict=True)):
        reach = (window[axis] - 1) * dilation[axis] + 1
        counted = -(-(size + pads[axis] + pads[rank + axis] - reach) // step) + 1
        count = min(counted, (size + pads[axis] - 1) // step + 1)
        is_wrong = is_wrong or count < counted
        pads[rank + axis] = max((count - 1) * step + reach - size - pads[axis], 0)
    return pads if is_wrong else None


def _ints(node: onnx.NodeProto, name: str, default: Any) -> Any:
    found = [a for a in node.attribute if a.name == name]
    return onnx.helper.get_attribute_value(found[0]) if found else default
