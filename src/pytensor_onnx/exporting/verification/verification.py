"""Check an exported model, load it, and compare it with PyTensor."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_ir as ir

from pytensor_onnx.errors import PyTensorONNXError, VerificationError
from pytensor_onnx.exporting.verification.comparison import OWN_INPUTS, Comparison
from pytensor_onnx.exporting.verification.sampling import (
    ATTEMPTS,
    KINDS,
    LONG_ATTEMPT,
    OTHER_ATTEMPTS,
    Sample,
)
from pytensor_onnx.graph.weights import is_large, without_weights

if TYPE_CHECKING:
    from pytensor_onnx.exporting.program.program import ONNXProgram

_ILL_CONDITIONED_SIZES = 2


def verify_program(
    program: ONNXProgram,
    inputs: Sequence[Sequence[Any]] = (),
    state: Mapping[str, np.ndarray] | None = None,
) -> str:
    """Verify a program and return one sentence on the verification.

    Parameters
    ----------
    program
        The program.
    inputs
        Lists of one array for each input, to compare on each of them; sampled unless given.
    state
        Values of the state by name, where other than those at export.

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
    check_model(program)
    comparison = Comparison(program, state or {})
    for arrays in inputs:
        _compare_on_given(comparison, arrays)
    if not inputs:
        _compare_on_samples(comparison)
    omitted = comparison.omitted()
    if omitted:
        warnings.warn(f"verification: {omitted}; {OWN_INPUTS}", UserWarning, stacklevel=5)
    if program._narrowing is not None and comparison.is_run:
        program.losses = program._narrowing.losses(comparison.arrays, comparison.names)
    return comparison.verdict(omitted)


def check_model(program: ONNXProgram) -> None:
    """Raise a `VerificationError` if the checker or the runtime refuses the model."""
    model = without_weights(program.model)[0] if is_large(program.model) else program.model
    try:
        onnx.checker.check_model(ir.to_proto(model), full_check=True)
        _ = program.session
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise VerificationError(f"the ONNX checker refuses the model: {error}") from error
    except PyTensorONNXError as error:
        raise VerificationError(str(error)) from error


def _compare_on_given(comparison: Comparison, arrays: Sequence[Any]) -> None:
    program = comparison.program
    given = Sample(program._check(arrays), [str(v.name) for v in program.inputs])
    if not any(comparison.can_compare(given, by_rewritten) for by_rewritten in (False, True)):
        raise VerificationError(
            f"PyTensor itself fails on these inputs: {comparison.error}"
        ) from comparison.error


def _compare_on_samples(comparison: Comparison) -> None:
    """Compare on samples, with the rewritten graph where the graph as written fails on all."""
    for by_rewritten in (False, True):
        if not comparison.is_run:
            _search(comparison, by_rewritten)


def _search(comparison: Comparison, by_rewritten: bool) -> None:
    """Compare on samples until every output is compared and one sample is well-conditioned."""
    inputs = comparison.program.inputs
    accepted: int | None = None
    for kind in KINDS if inputs else KINDS[:1]:
        sizes = ATTEMPTS if kind == KINDS[0] else ATTEMPTS[:2]
        for size in sizes if accepted is None else [accepted]:
            if comparison.can_compare(comparison.sample(size, kind), by_rewritten):
                accepted = size
                break
        if comparison.is_complete():
            break
    if comparison.refusal and accepted is not None and accepted < LONG_ATTEMPT:
        # The shortest inputs that are not refused may be without a frame.
        comparison.can_compare(comparison.sample(LONG_ATTEMPT), by_rewritten)
    # Outputs that are empty for small inputs, and products that are singular for tall matrices.
    for size in OTHER_ATTEMPTS if inputs and accepted is not None else ():
        if size != accepted and not comparison.is_complete(_ILL_CONDITIONED_SIZES):
            comparison.can_compare(comparison.sample(size), by_rewritten)
