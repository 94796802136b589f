"""The registry of definitions: PyTensor expressions for the Ops that ONNX has no operator for.

The modules and packages of `PACKAGES` are imported when a definition of theirs is wanted.
"""

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

from pytensor.configdefaults import config
from pytensor.graph.op import Op
from pytensor.tensor.extra_ops import SearchsortedOp
from pytensor.tensor.math import Dot
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.compat.pytensor import parse_gufunc_signature
from pytensor_onnx.late_names import import_modules

Expression = Callable[..., TensorVariable | Sequence[TensorVariable]]
Signature = str | Callable[[Any, int], str]

DEFINITIONS: dict[type[Op], "Definition"] = {}

PACKAGES: dict[str, tuple[str, ...]] = {
    "pytensor_onnx.functions.linalg": (
        "pytensor.tensor.linalg.",
        "pytensor_onnx.ops.linalg.complex_matrices",
    ),
    "pytensor_onnx.functions.random": (
        "pytensor.tensor.random.",
        "pytensor_onnx.ops.random.draws",
    ),
    "pytensor_onnx.functions.signal": ("pytensor_onnx.ops.signal",),
}
"""Modules and packages of definitions, with beginnings of the names of their Ops' modules."""

LOWERED_IN_BATCHES = (Dot, SearchsortedOp)
"""Ops whose lowerings take operands with axes before the core axes."""

_OWN = f"{__name__.partition('.')[0]}."


@dataclass(frozen=True)
class Definition:
    """A PyTensor expression that defines an Op.

    Attributes
    ----------
    op_type
        Class of the Op.
    expression
        Function of the operands; see `define`.
    inputs, outputs
        Names of the core axes of each operand and result; none for an elementwise definition.
    batches
        Whether the expression takes operands with axes before the core axes.
    signature_of
        Function of an Op and its number of operands that returns the signature, if that depends
        on them; `inputs` and `outputs` are then empty.
    known_up_to
        Largest size of a core axis that the expression is told; larger ones count as unknown.
    """

    op_type: type[Op]
    expression: Expression
    inputs: tuple[tuple[str, ...], ...] | None = None
    outputs: tuple[tuple[str, ...], ...] | None = None
    batches: bool = True
    signature_of: Callable[[Any, int], str] | None = None
    known_up_to: int | None = None

    def for_op(self, op: Op, count: int) -> "Definition":
        """Return the definition with the signature for an Op and its number of operands."""
        if self.signature_of is None:
            return self
        inputs, outputs = core_axes(self.signature_of(op, count))
        return replace(self, inputs=inputs, outputs=outputs, signature_of=None)

    @property
    def is_elementwise(self) -> bool:
        """Whether the expression is one of numbers, for operands of any shape."""
        return self.inputs is None

    @cached_property
    def keywords(self) -> tuple[str, ...]:
        """Names of the attributes and of the sizes that the expression depends on."""
        parameters = inspect.signature(self.expression).parameters.values()
        return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)

    def has_optional(self, count: int) -> bool:
        """Return whether some of a number of operands are optional."""
        parameters = inspect.signature(self.expression).parameters.values()
        operands = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        return any(p.default is not p.empty for p in operands[:count])

    @property
    def location(self) -> str:
        """File and line of the expression."""
        code = inspect.unwrap(self.expression).__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    @property
    def is_own(self) -> bool:
        """Whether the expression is one of this package, and not a user's."""
        return self.expression.__module__.startswith(_OWN)

    @property
    def float_x(self) -> str:
        """PyTensor's ``floatX`` for the expression: the user's for definitions of users.

        Under a ``floatX`` of float32, which users choose for their models, PyTensor would round the
        numbers of this package's formulas to float32.
        """
        return "float64" if self.is_own else str(config.floatX)

    def __call__(self, *operands: TensorVariable, **keywords: Any) -> list[TensorVariable]:
        """Return the results of the expression as a list."""
        with config.change_flags(floatX=self.float_x):
            results = self.expression(*operands, **keywords)
        return list(results) if isinstance(results, list | tuple) else [results]


def define[E: Expression](
    op_type: type[Op],
    signature: Signature | None = None,
    *,
    batches: bool = True,
    known_up_to: int | None = None,
) -> Callable[[E], E]:
    """Register a PyTensor expression as the definition of an Op.

    The expression becomes a model-local ONNX function, named after the Op and defined once for
    each combination of attributes, dtypes and ranks. It is converted as written, with equal nodes
    merged: of PyTensor's rewrites only those run by which loops store no unread steps and branches
    are taken lazily.

    Parameters
    ----------
    op_type
        Class of the Op.
    signature
        Core axes of operands and results in NumPy's form, ``"(m,n),(n)->(m)"``; a number is a size
        that all operands have, as in ``"(3),(3)->(3)"``. A function of the Op and its number of
        operands returns the signature if that depends on them. Without one the
        definition is elementwise, of operands of float32 or float64. An expression of elementwise
        operations receives 0-d tensors, and its function serves every rank. One with a loop, a
        branch or a reduction receives tensors of one shape, and has a function for each rank: the
        loop runs until all elements are done, and ``pt.switch`` keeps the values of finished
        elements.
        A random variable has none either: its expression receives the state of the generator, the
        sizes of the result and the parameters, and returns the next state and the draws.
    batches
        Whether operands may have axes before the core axes. The expression then works on the last
        axes, as NumPy's ``matmul`` does; the axes before them have equal sizes in all operands.
        Without it a batch is a loop over calls of the function.
    known_up_to
        Largest size of an axis that the expression is told, for one that has a form of its own for
        small sizes. All larger sizes share a function, which knows none.

    Returns
    -------
    callable
        A decorator. Positional parameters of the expression are the operands. Keyword-only
        parameters are attributes of the Op; one that is named like a core axis is the size of that
        axis where it is known, else None.

    Raises
    ------
    ValueError
        If the signature is not one, or does not fit the parameters of the expression.

    Examples
    --------
    >>> import numpy as np, pytensor.tensor as pt
    >>> from pytensor.graph import Apply, Op
    >>> from pytensor_onnx import compile_onnx, define
    >>> class Power(Op):
    ...     __props__ = ("exponent",)
    ...     def __init__(self, exponent):
    ...         self.exponent = exponent
    ...     def make_node(self, x):
    ...         return Apply(self, [x], [x.type()])
    ...     def perform(self, node, inputs, outputs):
    ...         outputs[0][0] = np.linalg.matrix_power(inputs[0], self.exponent)
    >>> @define(Power, "(n,n)->(n,n)")
    ... def power(x, *, exponent):
    ...     result = x
    ...     for _ in range(exponent - 1):
    ...         result = result @ x
    ...     return result
    >>> x = pt.matrix("x")
    >>> compile_onnx([x], Power(3)(x))([[0.0, 2.0], [1.0, 0.0]])
    array([[0., 4.],
           [2., 0.]])
    """
    inputs, outputs = core_axes("->()" if callable(signature) else signature)
    signature_of = signature if callable(signature) else None

    def register(expression: E) -> E:
        definition = Definition(
            op_type, expression, inputs, outputs, batches, signature_of, known_up_to
        )
        _check_parameters(definition)
        # The user's may have been registered before the package with ours was imported.
        if not (definition.is_own and op_type in DEFINITIONS):
            DEFINITIONS[op_type] = definition
        return expression

    return register


def definition_of(op_type: type[Op]) -> Definition | None:
    """Return the definition of a class of Ops, None if there is none.

    Examples
    --------
    >>> from pytensor.tensor.linalg.products import Expm
    >>> definition_of(Expm).inputs
    (('m', 'm'),)
    """
    if op_type not in DEFINITIONS:
        for package, modules in PACKAGES.items():
            if op_type.__module__.startswith(modules):
                import_modules(package)
    return DEFINITIONS.get(op_type)


def defined_in_batches(op: Op) -> bool:
    """Return whether an Op has a definition that takes axes before its core axes."""
    definition = definition_of(type(op))
    return definition is not None and not definition.is_elementwise and definition.batches


def needs_no_loop(op: Op) -> bool:
    """Return whether a batch of an Op is computed at once.

    Examples
    --------
    >>> needs_no_loop(Dot())
    True
    """
    return isinstance(op, LOWERED_IN_BATCHES) or defined_in_batches(op)


def define_late(module: str, *beginnings: str) -> None:
    """Import a module of definitions when a graph has an Op that the module may define.

    Parameters
    ----------
    module
        Name of a module, or of a package whose modules define Ops.
    beginnings
        Beginnings of the names of the modules that the Ops are from.
    """
    PACKAGES[module] = beginnings


def own_signature(op: Op, count: int) -> str:
    """Return the signature that an Op has itself, for `define`.

    Examples
    --------
    >>> from pytensor.tensor.linalg.solvers.general import Solve
    >>> own_signature(Solve(b_ndim=1), 2)
    '(m,m),(m)->(m)'
    """
    return str(op.gufunc_signature)


Axes = tuple[tuple[str, ...], ...]


@overload
def core_axes(signature: str) -> tuple[Axes, Axes]: ...
@overload
def core_axes(signature: None) -> tuple[None, None]: ...
def core_axes(signature: str | None) -> tuple[Axes, Axes] | tuple[None, None]:
    """Return the letters of the axes of operands and results in a signature, None without one.

    Examples
    --------
    >>> core_axes("(m,n),(n)->(m)")
    ((('m', 'n'), ('n',)), (('m',),))
    """
    if signature is None:
        return None, None
    inputs, outputs = parse_gufunc_signature(re.sub(r"\s", "", signature))
    return tuple(map(tuple, inputs)), tuple(map(tuple, outputs))


def _check_parameters(definition: Definition) -> None:
    """Raise if the expression does not take as many operands as the signature has."""
    parameters = inspect.signature(definition.expression).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in parameters) or not definition.inputs:
        return
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    if count != len(definition.inputs):
        raise ValueError(
            f"the definition of {definition.op_type.__name__} at {definition.location} takes "
            f"{count} operands, its signature {len(definition.inputs)}"
        )
