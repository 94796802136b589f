"""What comparisons on several samples have shown, and the verdict of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pytensor_onnx.errors import VerificationError
from pytensor_onnx.exporting.verification.results import OWN_INPUTS, Verification

_ILL_CONDITIONED_SAMPLES = 3
_AS_WRITTEN = "the graph as written"
_REWRITTEN = "PyTensor's rewritten graph"


@dataclass
class Evidence:
    """Outcomes of comparisons.

    Attributes
    ----------
    names
        Names of the outputs.
    unseen
        Positions of the outputs without a finite value so far.
    equal
        Samples on which results are equal.
    uncertain
        PyTensor's own rounding error on the other samples, with their description.
    completed
        Positions of the outputs where the rewritten graph is the reference of some elements.
    by_rewritten
        Whether it is the only reference.
    largest
        Largest relative error.
    is_run
        Whether any results were compared.
    error
        The first error of PyTensor.
    refusal, failure
        The first error of the runtime on sampled inputs; the same where PyTensor has results.
    """

    names: list[str]
    unseen: set[int]
    equal: dict[str, None] = field(default_factory=dict)
    uncertain: list[tuple[float, str]] = field(default_factory=list)
    completed: set[int] = field(default_factory=set)
    by_rewritten: bool = False
    largest: float = 0.0
    is_run: bool = False
    error: Exception | None = None
    refusal: str = ""
    failure: str = ""

    def is_complete(self, sizes: int = 0) -> bool:
        """Whether every output was compared, and well-conditioned inputs were found or given up.

        Parameters
        ----------
        sizes
            Number of further samples that may be ill-conditioned.
        """
        settled = bool(self.equal) or len(self.uncertain) >= _ILL_CONDITIONED_SAMPLES + sizes
        return self.is_run and not self.unseen and settled

    def omitted(self) -> str:
        """Describe the outputs and inputs that were not compared; empty if all were.

        Raises
        ------
        VerificationError
            If the program ran on no inputs, but PyTensor did.
        """
        if not self.is_run and self.refusal:
            raise VerificationError(f"{self.refusal}\n{OWN_INPUTS}") from self.error
        if not self.is_run:
            return f"not compared, as PyTensor fails on all sampled inputs ({self.reason})"
        names = ", ".join(self.names[i] for i in sorted(self.unseen))
        if names:
            return f"not compared: {names}, without a finite value on any of the inputs"
        if self.uncertain and not self.equal:
            return "compared within rounding only, as the graph is ill-conditioned on all inputs"
        return f"{_first_line(self.failure)}; PyTensor does not" if self.failure else ""

    @property
    def reason(self) -> str:
        """The first line of the first error of PyTensor."""
        return _first_line(str(self.error))

    def result(self, omitted: str) -> Verification:
        """Return the result of the comparison."""
        result = Verification(
            "equal" if self.equal else "within rounding" if self.uncertain else "not compared",
            omitted=omitted,
            largest_error=self.largest,
        )
        if result.verdict == "not compared":
            return result
        return replace(
            result,
            reference=self._reference(),
            samples=tuple(self.equal),
            ill_conditioned=min(self.uncertain)[1] if self.uncertain else "",
        )

    def _reference(self) -> str:
        """Name the reference that was taken."""
        if self.by_rewritten:
            return f"{_REWRITTEN}, as the graph as written fails ({self.reason})"
        if not self.completed:
            return _AS_WRITTEN
        names = ", ".join(self.names[i] for i in sorted(self.completed))
        return f"{_AS_WRITTEN} and, where that is not finite ({names}), with {_REWRITTEN}"


def _first_line(text: str) -> str:
    return text.splitlines()[0]
