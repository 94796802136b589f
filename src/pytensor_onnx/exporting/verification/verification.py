"""Check an exported model, load it, and compare it with PyTensor."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir
from pytensor.tensor.basic import Alloc, MakeVector, TensorFromScalar
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.shape import Shape, Shape_i

from pytensor_onnx.errors import PyTensorONNXError, VerificationError
from pytensor_onnx.exporting.verification.comparison import Comparison
from pytensor_onnx.exporting.verification.divergence import Conversion, differences_by_value
from pytensor_onnx.exporting.verification.model_check import check_model
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
