"""Compute the test vectors of a program by PyTensor."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pytensor_onnx.errors import VerificationError
from pytensor_onnx.exporting.verification.array_differences import disagreement
from pytensor_onnx.exporting.verification.divergence import Conversion
from pytensor_onnx.exporting.verification.file_vectors import Vectors
from pytensor_onnx.exporting.verification.results import OWN_INPUTS
from pytensor_onnx.exporting.verification.rounding import FACTOR
from pytensor_onnx.exporting.verification.verification import compare
from pytensor_onnx.running.session import Session


def make_vectors(
    conversion: Conversion, session: Session, inputs: Sequence[Sequence[Any]] = ()
) -> Vectors:
    """Return the first inputs on which a model is verified, and PyTensor's results for them.

    Parameters
    ----------
    conversion, session
        The model, its graph and its session.
    inputs
        Lists of one array for each input; sampled unless given.

    Raises
    ------
    VerificationError
        If the results of the session differ from PyTensor's, or PyTensor has none.
    """
    comparison = compare(conversion, session, inputs)
    if not comparison.evidence.is_run:
        raise VerificationError(f"there are no results to store; {OWN_INPUTS}")
    names = conversion.output_names
    pairs = list(zip(comparison.found, comparison.expected, strict=True))
    slack = {n: _slack(*pair) for n, pair in zip(names, pairs, strict=True) if disagreement(*pair)}
    outputs = dict(zip(names, comparison.expected, strict=True))
    return Vectors(comparison.feed(comparison.arrays), outputs, slack)


def _slack(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the difference that rounding allows, as in the verification of the export."""
    with np.errstate(all="ignore"):
        return FACTOR * float(np.nanmax(np.abs(found.astype("f8") - expected.astype("f8"))))
