"""Results of a verification, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pytensor_onnx.changes import Change

type Verdict = Literal[
    "not verified", "equal", "within rounding", "not compared", "different", "run only"
]
OWN_INPUTS = "give example_inputs to compare on inputs of your own"


@dataclass(frozen=True)
class ValueDifference:
    """How far a value within a model is from PyTensor's.

    Attributes
    ----------
    name
        Name of the value in the model.
    computes
        The PyTensor operation that computes it.
    largest
        Largest absolute difference; infinite where only one number is finite, or shapes differ.
    relative
        The same, relative to the largest magnitude.
    line
        Line of the user's code that made it, empty if unknown.
    problem
        How it differs beyond rounding, empty if it agrees.
    """

    name: str
    computes: str
    largest: float
    relative: float
    line: str = ""
    problem: str = ""

    def __str__(self) -> str:
        """Describe the difference in one line."""
        made = f", made at {self.line}" if self.line else ""
        difference = self.problem or f"largest difference {self.largest:.3g}"
        return f"{self.name!r}, which computes {self.computes}{made}: {difference}"


@dataclass(frozen=True)
class Verification:
    """Result of a verification: the verdict, the compared samples and the largest error.

    ``str(verification)`` describes the result in one sentence.

    Attributes
    ----------
    verdict
        ``"equal"`` to PyTensor on some samples, ``"within rounding"`` on all that were compared,
        ``"not compared"``, ``"different"`` (in a `VerificationError`), ``"run only"`` for a loaded
        file, or ``"not verified"``.
    reference
        The graph that the results agree with.
    samples
        The inputs on which results are equal but for the dtype's tolerance.
    part
        Part of a predictor's draws and rows of data that were compared, as in ``"8 of 1,000 draws
        and 500 of 500 rows, by a file of these draws"``; empty for other models.
    ill_conditioned
        The inputs on which results differ by no more than rounding in PyTensor, with the
        differences.
    omitted
        Outputs and inputs that were not compared, with the reason.
    largest_error
        Largest difference of an output from PyTensor's on all samples, relative to the output's
        largest magnitude.
    losses
        Errors that a lower precision brings.
    values
        Differences by value, in the order of computation, where they were asked for, or where
        results differ.
    message
        How the results differ.
    note
        A part of the model that other programs may refuse, with the reason.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x = pt.vector("x")
    >>> verification = export_onnx([x], pt.exp(x)).verification
    >>> verification.verdict, verification.samples, verification.largest_error < 1e-15
    ('equal', ('sampled inputs (x [3])',), True)
    >>> print(verification)  # doctest: +NORMALIZE_WHITESPACE
    checked, loaded and equal to PyTensor on sampled inputs (x [3]); agrees with the graph as
    written
    """

    verdict: Verdict = "not verified"
    reference: str = ""
    samples: tuple[str, ...] = ()
    part: str = ""
    ill_conditioned: str = ""
    omitted: str = ""
    largest_error: float = 0.0
    losses: tuple[Change, ...] = ()
    values: tuple[ValueDifference, ...] = ()
    message: str = ""
    note: str = ""

    @property
    def first_difference(self) -> ValueDifference | None:
        """The first value, in the order of computation, that differs beyond rounding."""
        return next((value for value in self.values if value.problem), None)

    @property
    def node(self) -> str:
        """The name of the first value that differs, empty if none does."""
        return self.first_difference.name if self.first_difference else ""

    @property
    def line(self) -> str:
        """The line of the user's code that made it, empty if unknown."""
        return self.first_difference.line if self.first_difference else ""

    def __str__(self) -> str:
        """Describe the verification in one sentence."""
        note = f"; {self.note}" if self.note else ""
        match self.verdict:
            case "not verified":
                return self.verdict
            case "different":
                return self.message
            case "not compared":
                return f"checked and loaded, but {self.omitted}; {OWN_INPUTS}"
            case "run only":
                samples = " and ".join(self.samples)
                return (
                    f"checked, loaded and run on {samples}; not compared, as {self.omitted}{note}"
                )
        parts = []
        if self.samples:
            parts.append(f"equal to PyTensor on {' and '.join(self.samples)}")
        if self.ill_conditioned:
            parts.append(f"as near to float64 as rounding in PyTensor on {self.ill_conditioned}")
        if self.part:
            parts.append(f"compared in {self.part}")
        missing = f"; {self.omitted}; {OWN_INPUTS}" if self.omitted else ""
        agreement = f"agrees with {self.reference}{missing}{note}"
        return f"checked, loaded and {'; '.join(parts)}; {agreement}"
