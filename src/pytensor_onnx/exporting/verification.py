"""Compare an exported model with PyTensor."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_ir as ir
from pytensor.graph.basic import Variable

from pytensor_onnx.errors import PyTensorONNXError, VerificationError
from pytensor_onnx.exporting.descriptions import weight_bytes
from pytensor_onnx.exporting.divergence import disagreement, first_divergence
from pytensor_onnx.exporting.evaluation import evaluate
from pytensor_onnx.exporting.promises import Promises
from pytensor_onnx.exporting.rounding import UndeterminedError, distances_from_double
from pytensor_onnx.exporting.sampling import KINDS, SIZE_ATTEMPTS, Sample, sample
from pytensor_onnx.graph.dims import dims_of

if TYPE_CHECKING:
    from pytensor_onnx.exporting.program import ONNXProgram

_LARGEST_CHECKED = 2**31 - 2**20
_ILL_CONDITIONED_SAMPLES = 3
_ILL_CONDITIONED_SIZES = 2
_OWN_INPUTS = "give example_inputs to compare on inputs of your own"


def verify_program(
    program: ONNXProgram,
    inputs: Sequence[Any] | None,
    state: Mapping[str, np.ndarray] | None = None,
) -> str:
    """Verify a program and return one sentence on the verification.

    Warns
    -----
    UserWarning
        If outputs have no finite value on any inputs, and were not compared.

    Raises
    ------
    VerificationError
        If the model is refused or its results differ from PyTensor's.
    """
    _check_model(program)
    comparison = _Comparison(program, state or {})
    if inputs is None:
        _compare_on_samples(comparison)
    else:
        given = Sample(program._check(inputs), [str(v.name) for v in program.inputs])
        try:
            comparison.compare(given)
        except _ReferenceError as error:
            raise VerificationError(
                f"PyTensor itself fails on these inputs: {error}"
            ) from error.__cause__
    omitted = comparison.omitted()
    if omitted:
        warnings.warn(f"verification: {omitted}", UserWarning, stacklevel=5)
    if program._narrowing is not None and comparison.is_run:
        program.losses = program._narrowing.losses(comparison.arrays, comparison.names)
    return comparison.verdict(omitted)


class _ReferenceError(Exception):
    """PyTensor cannot compute the graph on some inputs."""


def _compare_on_samples(comparison: _Comparison) -> None:
    """Compare on samples until every output is compared and one sample is well-conditioned."""
    inputs = comparison.program.inputs
    accepted: int | None = None
    for kind in KINDS if inputs else KINDS[:1]:
        sizes = range(SIZE_ATTEMPTS if kind == KINDS[0] else 2) if accepted is None else [accepted]
        for size in sizes:
            if comparison.can_compare(comparison.sample(size, kind)):
                accepted = size
                break
        if comparison.is_complete():
            break
    # Outputs that are empty for small inputs, and products that are singular for tall matrices.
    for size in reversed(range(SIZE_ATTEMPTS)) if inputs and accepted is not None else ():
        if size != accepted and not comparison.is_complete(_ILL_CONDITIONED_SIZES):
            comparison.can_compare(comparison.sample(size))


def _check_model(program: ONNXProgram) -> None:
    if weight_bytes(program.model) > _LARGEST_CHECKED:
        return
    try:
        onnx.checker.check_model(program.proto, full_check=True)
        _ = program.session
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise VerificationError(f"the ONNX checker refuses the model: {error}") from error
    except PyTensorONNXError as error:
        raise VerificationError(str(error)) from error


class _Comparison:
    """Results of a program and of PyTensor on several inputs."""

    def __init__(self, program: ONNXProgram, state: Mapping[str, np.ndarray]) -> None:
        self.program = program
        self.reason = ""
        self.states = [state.get(s.name, s.value) for s in program._states]
        self.state_sizes = _sizes(program.model.graph.inputs[len(program.inputs) :], self.states)
        self.names = [str(v.name) for v in program.model.graph.outputs]
        self.promises = Promises(program._reference)
        variables = program._reference.outputs
        self.unseen = {i for i, v in enumerate(variables) if not _is_always_empty(v)}
        self.equal: list[str] = []
        self.uncertain: list[tuple[float, str]] = []
        self.is_run = False
        self.arrays: list[np.ndarray] = []

    def is_complete(self, sizes: int = 0) -> bool:
        """Whether every output was compared, and well-conditioned inputs were found or given up."""
        settled = bool(self.equal) or len(self.uncertain) >= _ILL_CONDITIONED_SAMPLES + sizes
        return self.is_run and not self.unseen and settled

    def sample(self, size: int, kind: str = KINDS[0]) -> Sample:
        """Return a sample whose arrays are those of values where inputs are encoded."""
        drawn = sample(self.program.inputs, size, kind, self.state_sizes)
        given = self.program._signature.inputs
        return replace(drawn, arrays=given.sampled(self.promises.keep(drawn.arrays)))

    def can_compare(self, sample: Sample) -> bool:
        """Compare on one sample; return False if PyTensor cannot compute it."""
        try:
            self.compare(sample)
        except _ReferenceError as error:
            self.reason = self.reason or str(error).splitlines()[0]
            return False
        return True

    def compare(self, sample: Sample) -> None:
        """Compare on one sample.

        Raises
        ------
        VerificationError
            If the results of the program differ from PyTensor's.
        _ReferenceError
            If PyTensor fails on the sample.
        """
        program = self.program
        arrays = [*sample.arrays, *self.states]
        try:
            expected = evaluate(program._reference, arrays)
        except Exception as error:
            raise _ReferenceError(str(error) or type(error).__name__) from error
        feed = dict(zip((str(v.name) for v in program.model.graph.inputs), arrays, strict=True))
        found = program.session.run(feed)
        if any(map(_is_unsolved, expected, found)):
            raise _ReferenceError("a linear system is singular")
        differences = {i: text for i, text in enumerate(map(disagreement, found, expected)) if text}
        if differences:
            self.uncertain.append(self._rounding_error(sample, feed, found, expected, differences))
        self.is_run = True
        self.arrays = self.arrays or arrays
        seen = {i for i in self.unseen if _has_finite_value(expected[i])}
        if not differences and (seen or not self.unseen):
            self.equal.append(str(sample))
        self.unseen -= seen

    def _rounding_error(
        self,
        sample: Sample,
        feed: Mapping[str, np.ndarray],
        found: Sequence[np.ndarray],
        expected: Sequence[np.ndarray],
        differences: Mapping[int, str],
    ) -> tuple[float, str]:
        """Return the size and description of rounding errors, or raise for other errors."""
        program = self.program
        try:
            distances = distances_from_double(
                program._reference, list(feed.values()), found, expected, list(differences)
            )
        except UndeterminedError as error:
            raise _ReferenceError(f"{error}, if numbers are rounded differently") from error
        except Exception:  # the difference itself is the error to report
            distances = {}
        for i, difference in differences.items():
            if i not in distances or not distances[i].is_rounding:
                away = f" Compared with float64, {distances[i]}." if i in distances else ""
                raise VerificationError(
                    f"output {self.names[i]!r} differs from PyTensor: {difference}.{away}\n"
                    f"{first_divergence(program, feed)}\n"
                    f"Compared on {sample}; {_OWN_INPUTS}."
                )
        listing = "; ".join(f"{self.names[i]}: {distances[i]}" for i in differences)
        return (
            max(distances[i].own for i in differences),
            f"{sample}, which are ill-conditioned ({listing})",
        )

    def omitted(self) -> str:
        """Describe the outputs that were not compared; empty if all were."""
        if not self.is_run:
            return f"not compared, as PyTensor fails on all sampled inputs ({self.reason})"
        names = ", ".join(self.names[i] for i in sorted(self.unseen))
        if names:
            return f"not compared: {names}, without a finite value on any of the inputs"
        if self.uncertain and not self.equal:
            return "compared within rounding only, as the graph is ill-conditioned on all inputs"
        return ""

    def verdict(self, omitted: str) -> str:
        """Return one sentence on the verification."""
        parts = []
        if self.equal:
            parts.append(f"equal to PyTensor on {' and '.join(self.equal)}")
        if self.uncertain:
            near = "as near to float64 as rounding in PyTensor on"
            parts.append(f"{near} {min(self.uncertain)[1]}")
        if not parts:
            return f"checked and loaded, but {omitted}; {_OWN_INPUTS}"
        missing = f"; {omitted}; {_OWN_INPUTS}" if omitted else ""
        return f"checked, loaded and {'; '.join(parts)}{missing}"


def _sizes(values: Sequence[ir.Value], arrays: Sequence[np.ndarray]) -> dict[str, int]:
    """Return the sizes of named dimensions, which arrays have."""
    return {
        str(dim): size
        for value, array in zip(values, arrays, strict=True)
        for dim, size in zip(dims_of(value) or (), array.shape, strict=True)
        if not isinstance(dim, int)
    }


def _is_unsolved(expected: np.ndarray, found: np.ndarray) -> bool:
    """Return whether an array is PyTensor's for a singular system: NaN, of the matrix's shape."""
    if expected.dtype.kind != "f" or expected.shape == found.shape:
        return False
    return bool(expected.size and np.isnan(expected).all())


def _is_always_empty(variable: Variable) -> bool:
    return 0 in getattr(variable.type, "shape", ())


def _has_finite_value(array: np.ndarray) -> bool:
    return bool(array.size and (array.dtype.kind != "f" or np.isfinite(array).any()))
