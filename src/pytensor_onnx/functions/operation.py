"""Ops made by their definitions."""

import inspect
from collections.abc import Callable
from functools import cache
from types import new_class
from typing import Any, ClassVar

import numpy as np
import pytensor
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.type import Type
from pytensor.scalar.basic import ScalarOp, ScalarType, upcast, upgrade_to_float_no_complex
from pytensor.tensor.basic import as_tensor_variable
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.exceptions import ShapeError
from pytensor.tensor.type import tensor

from pytensor_onnx.functions.registry import DEFINITIONS, core_axes, define


class Operation[**P, R]:
    """An Op made by `operation`: a call applies it to operands, with attributes as keywords.

    Operands with axes before those of the signature are a batch.

    Attributes
    ----------
    expression
        The definition, which a call does not evaluate.
    op_type
        Class of the Op, or of the scalar Op if the definition is elementwise.
    """

    def __init__(self, expression: Callable[P, R], op_type: type[Op]) -> None:
        self.expression = expression
        self.op_type = op_type
        self.__name__, self.__doc__ = expression.__name__, expression.__doc__
        self.__module__ = expression.__module__

    def __call__(self, *operands: P.args, **attributes: P.kwargs) -> R:
        """Return the results for operands."""
        op = self.op(**attributes)
        variables = [as_tensor_variable(x) for x in operands]
        if isinstance(op, DefinedOp):
            inputs, _ = core_axes(op.gufunc_signature)
            if any(x.type.ndim > len(axes) for x, axes in zip(variables, inputs, strict=True)):
                op = Blockwise(op)
        return op(*variables)

    def op(self, **attributes: Any) -> Op:
        """Return the Op with attributes, without the `Blockwise` for a batch."""
        if issubclass(self.op_type, ScalarOp):
            return Elemwise(self.op_type(name=self.__name__))
        return self.op_type(**attributes)

    def __reduce__(self) -> str:
        return self.__name__


class DefinedScalarOp(ScalarOp):
    """Base of the elementwise Ops that `operation` makes."""

    def output_types(self, types: list[ScalarType]) -> list[ScalarType]:
        """Return the widest floating dtype of the operands for each result."""
        return [*upgrade_to_float_no_complex(*types)] * self.nout


class DefinedOp(Op):
    """Base of the Ops on axes that `operation` makes.

    Attributes
    ----------
    gufunc_signature
        The core axes of the operands and of the results.
    reference
        Function of arrays that computes the results, if there is one.
    defaults
        Values of attributes that need not be given.
    """

    gufunc_signature: str
    reference: ClassVar[Callable[..., Any] | None]
    defaults: ClassVar[dict[str, Any]]

    def __init__(self, **attributes: Any) -> None:
        given = self.defaults | attributes
        if given.keys() != {*self.__props__}:
            raise TypeError(f"{type(self).__name__} has the attributes {self.__props__}")
        for name, value in given.items():
            setattr(self, name, value)

    def make_node(self, *operands: Variable) -> Apply:
        """Return the application to operands, with the sizes that they are known to have."""
        variables = [as_tensor_variable(x) for x in operands]
        sizes = self._sizes([x.type.shape for x in variables])
        dtypes = [x.type.dtype for x in variables]
        dtype = upcast(*([d for d in dtypes if np.dtype(d).kind == "f"] or dtypes))
        _, outputs = core_axes(self.gufunc_signature)
        shapes = [tuple(map(sizes.get, axes)) for axes in outputs]
        return Apply(self, variables, [tensor(dtype=dtype, shape=shape) for shape in shapes])

    def infer_shape(self, node: Apply, shapes: Any) -> list[tuple[Any, ...]]:
        """Return the sizes that operands have."""
        sizes = self._sizes(shapes)
        _, outputs = core_axes(self.gufunc_signature)
        if any(axis not in sizes for axes in outputs for axis in axes):
            raise ShapeError("the results have axes that no operand has")
        return [tuple(sizes[axis] for axis in axes) for axes in outputs]

    def _sizes(self, shapes: Any) -> dict[str, Any]:
        """Return the known sizes of axes, by the first operand that has them."""
        inputs, outputs = core_axes(self.gufunc_signature)
        given = [
            (axis, size)
            for axes, shape in zip(inputs, shapes, strict=True)
            for axis, size in zip(axes, shape, strict=True)
            if size is not None
        ]
        numbers = {axis: int(axis) for axes in outputs for axis in axes if axis.isdecimal()}
        return numbers | dict(reversed(given))

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Compute the results by the reference, or by PyTensor from the definition."""
        attributes = {name: getattr(self, name) for name in self.__props__}
        if self.reference is None:
            results = _evaluated(self, tuple(x.type for x in node.inputs))(*inputs)
        else:
            results = self.reference(*inputs, **attributes)
            results = [results] if len(node.outputs) == 1 else results
        for storage, output, result in zip(output_storage, node.outputs, results, strict=True):
            storage[0] = np.asarray(result, output.type.dtype, order="C")


def performed(op: Op, *values: Any) -> list[Any]:
    """Return the results of an Op for arrays, as PyTensor computes them.

    Examples
    --------
    >>> from pytensor.tensor.linalg.summary import Det
    >>> performed(Det(), np.eye(2) * 3)
    [array(9.)]
    """
    node = op.make_node(*values)
    results: list[list[Any]] = [[None] for _ in node.outputs]
    op.perform(node, list(values), results)
    return [result for (result,) in results]


@cache
def _evaluated(op: DefinedOp, types: tuple[Type, ...]) -> Callable[..., Any]:
    """Return a function that evaluates a definition in Python; sizes are unknown to it."""
    operands = [type_() for type_ in types]
    definition = DEFINITIONS[type(op)]
    keywords = {name: getattr(op, name, None) for name in definition.keywords}
    return pytensor.function(operands, definition(*operands, **keywords), mode=Mode("py", None))


def operation[**P, R](
    signature: str | Callable[[Any, int], str] | None = None,
    *,
    reference: Callable[..., Any] | None = None,
    pullback: Callable[..., list[Variable]] | None = None,
    name: str | None = None,
    batches: bool = True,
    results: int = 1,
) -> Callable[[Callable[P, R]], Operation[P, R]]:
    """Make an Op of its definition, a PyTensor expression, which is registered for the Op.

    The attributes of the Op are the keyword-only parameters of the expression that are no axes of
    the signature. The results have the floating dtype of the operands.

    Parameters
    ----------
    signature, batches
        The parameters of `define`.
    reference
        Function of NumPy arrays, and of the attributes as keywords, that returns the result or a
        sequence of the results; of numbers, if the definition is elementwise. PyTensor computes
        the Op by it, also to verify exports. Without one PyTensor evaluates the definition, which
        elementwise ones do not allow.
    pullback
        Method ``pullback`` of the Op: a function of the Op, the operands, the results and their
        gradients that returns the gradients of the operands. In an elementwise operation all are
        scalars of PyTensor.
    name
        Name of the class and of the ONNX function. If omitted, the name of the expression in
        capitals: ``SecondLog`` for ``second_log``.
    results
        Number of the results of an elementwise operation.

    Returns
    -------
    callable
        A decorator, which returns an `Operation`.

    Raises
    ------
    ValueError
        If the signature does not fit the parameters of the expression, or if an elementwise
        definition has no reference.

    Examples
    --------
    >>> import numpy as np, pytensor.tensor as pt
    >>> from pytensor_onnx import compile_onnx, operation
    >>> @operation("(n,n)->(n,n)", reference=lambda x, exponent: x ** (2 * exponent))
    ... def even_power(x, *, exponent=1):
    ...     return (x * x) ** exponent
    >>> x = pt.matrix("x")
    >>> compile_onnx([x], even_power(x, exponent=2))([[0.0, 2.0], [1.0, 0.0]])
    array([[ 0., 16.],
           [ 1.,  0.]])
    """

    def make(expression: Callable[P, R]) -> Operation[P, R]:
        name_of = expression.__name__
        parameters = inspect.signature(expression).parameters.values()
        contents: dict[str, Any] = {
            "__doc__": expression.__doc__,
            "__module__": expression.__module__,
            "__qualname__": f"{name_of}.op_type",
        }
        if signature is None:
            if reference is None:
                raise ValueError(f"the elementwise operation {name_of} has no reference")
            base: type[Op] = DefinedScalarOp
            contents |= {"nin": len(parameters), "nout": results, "impl": staticmethod(reference)}
        else:
            base = DefinedOp
            sides = core_axes(signature) if isinstance(signature, str) else ()
            axes = {axis for side in sides for operand in side for axis in operand}
            attributes = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in axes]
            contents |= {
                "__props__": tuple(p.name for p in attributes),
                "defaults": {p.name: p.default for p in attributes if p.default is not p.empty},
                "reference": reference and staticmethod(reference),
                "gufunc_signature": signature
                if isinstance(signature, str)
                else property(lambda op: signature(op, 0)),
            }
        if pullback is not None:
            contents["pullback"] = pullback
        capitals = "".join(part[:1].upper() + part[1:] for part in name_of.split("_"))
        op_type = new_class(name or capitals, (base,), exec_body=lambda x: x.update(contents))
        define(op_type, signature, batches=batches)(expression)
        return Operation(expression, op_type)

    return make
