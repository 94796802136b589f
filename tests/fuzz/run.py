"""Search for random graphs on which ONNX and PyTensor differ, made small."""

from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from tests.fuzz.comparison import Case, check, quiet
from tests.fuzz.shrink import shrink
from tests.fuzz.strategy import cases

MEMORY = 8 * 2**30


@dataclass
class Failure:
    """A graph on which ONNX and PyTensor differ.

    Attributes
    ----------
    error
        What went wrong.
    code
        Script that reproduces it.
    """

    error: str
    code: str

    def __str__(self) -> str:
        return f"{self.error}\n\n{self.code}\n"


def find_failures(graphs: int, seed: int) -> list[Failure]:
    """Return failing graphs among random ones, made small, one for each kind of failure.

    Parameters
    ----------
    graphs
        Number of graphs to try.
    seed
        What the graphs depend on.
    """
    failures: dict[str, Failure] = {}

    @seeded(seed)
    @settings(
        max_examples=graphs,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def search(case: Case) -> None:
        error = error_of(case) if case.outputs else None
        if error is None or (kind := repr(error)[:60]) in failures:
            return
        small = shrink(case, lambda c: type(error_of(c)) is type(error))
        shown = error_of(small)
        if shown is None:  # It does not fail every time.
            small, shown = case, error
        failures[kind] = Failure(f"{type(shown).__name__}: {shown}", small.code)

    with quiet():
        search()
    return list(failures.values())


def error_of(case: Case) -> Exception | None:
    """Return what is raised in comparing a case, None where ONNX and PyTensor agree."""
    try:
        check(case)
    except Exception as error:
        return error
    return None


def limit_memory() -> None:
    """Let a graph that needs too much memory fail, and not the machine."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
