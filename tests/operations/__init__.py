"""Records of operations by families: one entry tests an operation in every layer."""

from tests.operations import (
    arithmetic,
    bessel,
    bessel_order,
    beta_derivatives,
    diagonals,
    elementary,
    error_functions,
    gamma,
    hypergeometric,
    incomplete_beta,
    incomplete_gamma,
    inverse_incomplete_beta,
    inverse_incomplete_gamma,
    linalg,
    modified_bessel_order,
    owens_t,
    portable,
    reductions,
    sorting,
)
from tests.operations.record import Operation

FAMILIES = (
    arithmetic,
    bessel,
    bessel_order,
    beta_derivatives,
    diagonals,
    elementary,
    error_functions,
    gamma,
    hypergeometric,
    incomplete_beta,
    incomplete_gamma,
    inverse_incomplete_beta,
    inverse_incomplete_gamma,
    linalg,
    modified_bessel_order,
    owens_t,
    portable,
    reductions,
    sorting,
)
OPERATIONS: dict[str, Operation] = {str(x): x for family in FAMILIES for x in family.OPERATIONS}


def drawn_by_fuzzer(kind: str) -> list[Operation]:
    """Return the operations of a kind of the fuzzer; their names are those of `pytensor.tensor`."""
    return [x for x in OPERATIONS.values() if x.fuzz == kind]


__all__ = ["OPERATIONS", "Operation", "drawn_by_fuzzer"]
