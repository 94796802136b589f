"""Names of operations in error messages as the user wrote them, and Ops without a lowering."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import onnx_ir as ir
import pytensor.tensor as pt
from pytensor.compile.ops import FromFunctionOp
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.optimize import ScipyWrapperOp
from pytensor.tensor.random.op import RandomVariable

from pytensor_onnx.dispatch.registry.basic import Lowered, onnx_funcify
from pytensor_onnx.errors import Problem, UnsupportedCase
from pytensor_onnx.functions.loops.search_options import Refused
from pytensor_onnx.graph.builder import Builder
from pytensor_onnx.rewriting.engine.walkers import core_op, inner_nodes
from pytensor_onnx.site_pages import page
from pytensor_onnx.user_code import line_in, origins_of

_LINEAR_ALGEBRA = "pytensor.tensor.linalg"
_MISSING = "no lowering is registered for"
_NO_OTHER_WAY = "write the expression with supported operations"
_OTHER_NAMES = {
    "BlockDiagonal": "block_diag",
    "CholeskySolve": "cho_solve",
    "KroneckerProduct": "kron",
    "LUFactorTridiagonal": "tridiagonal_lu_factor",
    "MatrixInverse": "inv",
    "MatrixPinv": "pinv",
    "PivotToPermutations": "pivot_to_permutation",
    "SolveLUFactorTridiagonal": "tridiagonal_lu_solve",
}

IsMissing = Callable[[Op], bool]


def is_linear_algebra(op: Op) -> bool:
    """Return whether an Op comes from `pytensor.tensor.linalg`."""
    return type(core_op(op)).__module__.startswith(_LINEAR_ALGEBRA)


def problem_as_written(
    node: Apply, case: UnsupportedCase, line: str, is_missing: IsMissing
) -> Problem:
    """Return the problem of a node, with the name of the Op that the user wrote.

    Parameters
    ----------
    node
        Node that cannot be converted.
    case
        The reason and the advice.
    line
        Line of the user's code.
    is_missing
        Function that returns whether an Op has no lowering.
    """
    variable = node.outputs[0]
    origins = origins_of(variable) if is_missing(node.op) else ()
    origin = next((origin for origin in origins if is_missing(origin.op)), None)
    if origin is None:
        return _problem(node.op, variable.name, line, case)
    where = line_in(origin.trace) or line
    is_as_written = core_op(origin.op) == core_op(node.op)
    return _problem(origin.op, origin.name, where, case if is_as_written else None)


def nested_problems_as_written(
    node: Apply, problems: Sequence[Problem], line: str, is_missing: IsMissing
) -> list[Problem]:
    """Return the problems of an inner graph, with the names of the Ops that the user wrote.

    The inner graph may be a rewritten one; the original node has the Ops.
    """
    if is_missing(node.op):
        case = UnsupportedCase(problems[0].reason, problems[0].hint)
        return [problem_as_written(node, case, line, is_missing)]
    located = [replace(problem, where=problem.where or line) for problem in problems]
    missing = [
        inner.op
        for origin in origins_of(node.outputs[0])
        for inner in inner_nodes(origin.op)
        if is_missing(inner.op)
    ]
    asked = [_problem(op, None, line, None) for op in dict.fromkeys(missing)]
    names = {problem.subject for problem in asked}
    made = [p for p in located if p.reason.startswith(_MISSING) and p.subject not in names]
    if not made or not asked:
        return located
    kept = [problem for problem in located if problem not in made]
    found = {problem.subject for problem in kept}
    return kept + [problem for problem in asked if problem.subject not in found]


def _problem(op: Op, name: str | None, line: str, case: UnsupportedCase | None) -> Problem:
    """Return a `Problem`; `case` is None for an Op that a rewrite already replaced."""
    subject = name_as_written(op, line)
    reason = "" if case is None else case.reason
    hint = _NO_OTHER_WAY if case is None else case.hint
    if is_linear_algebra(op) and (case is None or reason.startswith(_MISSING)):
        reason = f"{_MISSING} {'pt.linalg.' if subject in pt.linalg.__all__ else ''}{subject}"
        hint = hint if subject in _public_names(op) else _NO_OTHER_WAY
    elif case is None:
        reason = f"{_MISSING} {type(core_op(op)).__module__}.{type(core_op(op)).__qualname__}"
    return Problem(subject=subject, variable=name or "", where=line, reason=reason, hint=hint)


def name_as_written(op: Op, line: str) -> str:
    """Return the name of the function that the user called.

    Parameters
    ----------
    op
        An Op.
    line
        The line of code that made it: functions may be made of several Ops.

    Examples
    --------
    >>> name_as_written(pt.linalg.matrix_inverse, "")
    'inv'
    >>> name_as_written(pt.linalg.matrix_inverse, "m.py:1  y = pt.linalg.matrix_power(x, -2)")
    'matrix_power'
    >>> name_as_written(pt.gammaln, "")
    'gammaln'
    """
    names = list(_public_names(op))
    words = re.findall(r"\w+", line.partition("  ")[2])
    called = [name for name in names if name in words]
    if not called and is_linear_algebra(op):
        called = [word for word in words if word in pt.linalg.__all__]
    return [*called, *names, str(op)][0]


def _public_names(op: Op) -> Iterator[str]:
    core = core_op(op)
    kind = type(core).__name__
    if is_linear_algebra(core):
        if kind in _OTHER_NAMES:
            yield _OTHER_NAMES[kind]
        yield from (name for name in pt.linalg.__all__ if name.replace("_", "") == kind.lower())
    if isinstance(core, Elemwise):
        yield from (name for name, other in vars(pt).items() if other == core)
    if isinstance(core, RandomVariable) and core.name:
        yield core.name
    if isinstance(core, FromFunctionOp):
        yield str(core).partition("{")[2].rstrip("}")


REFUSED = (FromFunctionOp, ScipyWrapperOp)


@onnx_funcify.register(FromFunctionOp)
def refuse_python_function(
    op: FromFunctionOp, node: Apply, build: Builder, *inputs: ir.Value
) -> Lowered:
    """Refuse a function of Python, which no ONNX runtime can call."""
    raise build.unsupported(
        "wrap_py calls a Python function, and ONNX runtimes run no Python",
        "write the function with PyTensor's operations, or as an Op with a lowering of its own "
        f"({page('how-to/add-an-op')}), or compute its result beforehand and give it as an input",
    )


@onnx_funcify.register(ScipyWrapperOp)
def refuse_optimizer(op: ScipyWrapperOp, node: Apply, build: Builder, *inputs: ir.Value) -> Lowered:
    """Refuse an optimizer without a loop; rewrites have replaced the other optimizers by loops."""
    from pytensor_onnx.functions.loops.optimizer_calls import search

    try:
        search(node)
    except Refused as refused:
        raise build.unsupported(refused.reason, refused.instead) from None
    raise AssertionError("an optimizer was left that a loop stands for")
