"""Definitions of Ops by PyTensor expressions."""

import re

import numpy as np
import onnxruntime
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.conditional.op import ifelse
from pytensor.graph import Apply, Op
from pytensor.graph.basic import Variable
from pytensor.scalar import basic as ps
from pytensor.scalar.basic import Composite, UnaryScalarOp, upgrade_to_float
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky

from pytensor_onnx import UnsupportedOpError, compile_onnx, define, export_onnx
from pytensor_onnx.functions.registry import DEFINITIONS, definition_of
from pytensor_onnx.late_names import import_modules
from tests.conftest import compare_onnx_and_py, op_types


@pytest.fixture(autouse=True)
def _definitions_of_their_own():
    import_modules("pytensor_onnx.functions.linalg")
    before = dict(DEFINITIONS)
    yield
    DEFINITIONS.clear()
    DEFINITIONS.update(before)


def column(matrix: Variable, j: Variable) -> Variable:
    return matrix[..., :, j]


def cholesky(a, *, lower):
    """Factorise by columns."""
    n = a.shape[-1]
    rows = pt.arange(n)

    def step(j, factor, a):
        done = (factor * factor[..., j, :][..., None, :]).sum(axis=-1)
        rest = pt.switch(rows < j, 0.0, column(a, j) - done)
        return pt.set_subtensor(factor[..., :, j], rest / pt.sqrt(rest[..., j])[..., None])

    factors = pytensor.scan(
        step, [rows], [pt.zeros_like(a)], non_sequences=[a], return_updates=False
    )
    factor = factors[-1]
    return factor if lower else factor.swapaxes(-1, -2)


def positive_definite(*shape: int) -> np.ndarray:
    a = np.random.default_rng(0).normal(size=(*shape, shape[-1]))
    return a @ a.swapaxes(-1, -2) + np.eye(shape[-1])


@pytest.mark.each_value
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("batch", [(), (2,), (3, 2)])
def test_a_definition_with_a_loop_serves_any_batch(batch, lower):
    define(Cholesky, "(n,n)->(n,n)")(cholesky)
    x = pt.tensor("x", shape=(None,) * (2 + len(batch)))
    op = Blockwise(Cholesky(lower=lower)) if batch else Cholesky(lower=lower)
    program = compare_onnx_and_py([x], op(x), [positive_definite(*batch, 5)])
    [function] = program.model.functions.values()
    lower_part = "lower_" if lower else ""
    batch_part = f"_batch{len(batch)}" if batch else ""
    assert function.name == f"Cholesky_{lower_part}float64{batch_part}"
    assert function.doc_string == "Factorise by columns."
    assert sum(node.op_type in ("Loop", "Scan") for node in function.all_nodes()) == 1


def test_attributes_tell_functions_apart():
    define(Cholesky, "(n,n)->(n,n)")(cholesky)
    x = pt.matrix("x")
    lower, upper = Cholesky(lower=True), Cholesky(lower=False)
    program = compare_onnx_and_py([x], [lower(x), upper(x), lower(x + 1)], [positive_definite(3)])
    names = [f.name for f in program.model.functions.values()]
    assert sorted(names) == ["Cholesky_float64", "Cholesky_lower_float64"]


def test_a_loop_of_a_definition_keeps_one_step():
    define(Cholesky, "(n,n)->(n,n)")(cholesky)
    x = pt.matrix("x")
    program = export_onnx([x], Cholesky()(x), verify=False)
    [function] = program.model.functions.values()
    [loop] = [node for node in function.all_nodes() if node.op_type in ("Loop", "Scan")]
    assert len(loop.outputs) == 1


def test_a_definition_that_does_not_batch_is_looped_over():
    define(Cholesky, "(n,n)->(n,n)", batches=False)(cholesky)
    x = pt.tensor3("x")
    program = compare_onnx_and_py([x], Blockwise(Cholesky())(x), [positive_definite(4, 3)])
    assert "Loop" in op_types(program)


class Solve(Op):
    """Solve a system, and return the residual."""

    __props__ = ()
    gufunc_signature = "(n,n),(n)->(n),()"

    def make_node(self, a, b):
        return Apply(self, [a, b], [pt.vector(dtype=b.dtype), pt.scalar(dtype=b.dtype)])

    def perform(self, node, inputs, outputs):
        a, b = inputs
        outputs[0][0] = x = np.linalg.solve(a, b)
        outputs[1][0] = np.asarray(np.abs(a @ x - b).max())


@pytest.mark.parametrize("shapes", [[(2, 2), (2,)], [(5, 2, 2), (5, 2)], [(1, 2, 2), (4, 2)]])
def test_operands_of_several_results_have_equal_batches(shapes):
    @define(Solve, "(n,n),(n)->(n),()")
    def solve(a, b):
        (p, q), (r, s) = ([a[..., i, j] for j in range(2)] for i in range(2))
        rows = [[s, -q], [-r, p]]
        inverse = pt.stack([pt.stack(row, axis=-1) for row in rows], axis=-2)
        x = pt.matmul(inverse / (p * s - q * r)[..., None, None], b[..., None])[..., 0]
        residual = pt.abs(pt.matmul(a, x[..., None])[..., 0] - b).max(axis=-1)
        return x, residual * 0.0

    class Exact(Solve):
        def perform(self, node, inputs, outputs):
            outputs[0][0] = np.linalg.solve(*inputs)
            outputs[1][0] = np.zeros(())

    DEFINITIONS[Exact] = definition_of(Solve)
    values = [np.random.default_rng(1).normal(size=shape) for shape in shapes]
    a, b = (
        pt.tensor(name, shape=tuple(1 if n == 1 else None for n in v.shape))
        for name, v in zip("ab", values, strict=True)
    )
    op = Exact() if len(shapes[0]) == 2 else Blockwise(Exact())
    compare_onnx_and_py([a, b], op(a, b), values, rtol=1e-12)


class Trace(Op):
    """Trace of a matrix."""

    __props__ = ()

    def make_node(self, a):
        return Apply(self, [a], [pt.scalar(dtype=a.dtype)])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(np.trace(inputs[0]))


def test_sizes_that_a_definition_asks_for_are_those_of_its_operands():
    seen = []

    @define(Trace, "(n,n)->()")
    def trace(a, *, n):
        seen.append(n)
        if n is not None and n <= 3:
            return sum(a[i, i] for i in range(n))
        return pt.diagonal(a).sum()

    small, large, unknown = (
        pt.matrix(name, shape=(n, n)) for name, n in {"small": 3, "large": 4, "any": None}.items()
    )
    values = [np.random.default_rng(2).normal(size=(n, n)) for n in (3, 4, 5)]
    program = compare_onnx_and_py(
        [small, large, unknown], [Trace()(m) for m in (small, large, unknown)], values
    )
    assert {*seen} == {3, 4, None}
    assert len(program.model.functions) == 3


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        (lambda a: [a.sum(), a.sum()], "float64 of rank 0, float64 of rank 0"),
        (lambda a: a.sum().astype("float32"), "float32 of rank 0"),
        (lambda a: a.sum(axis=0), "float64 of rank 1"),
    ],
)
def test_a_definition_that_does_not_fit_is_refused_with_its_line(expression, found):
    define(Trace, "(n,n)->()")(expression)
    x = pt.matrix("x")
    line = rf"{re.escape(__file__)}:\d+"
    with pytest.raises(UnsupportedOpError, match=f"definition of Trace at {line} returns {found}"):
        export_onnx([x], Trace()(x))


def test_an_unsupported_op_in_a_definition_is_named_with_its_line():
    class Opaque(Trace):
        """An Op without a lowering."""

    @define(Trace, "(n,n)->()")
    def trace(a):
        return Opaque()(a)

    x = pt.matrix("x")
    with pytest.raises(
        UnsupportedOpError, match=r"definition of Trace at .*: no lowering .*Opaque"
    ):
        export_onnx([x], Trace()(x))


class Doubled(UnaryScalarOp):
    """Twice a number."""


@pytest.mark.parametrize(
    "expression",
    [
        lambda x, itself: itself(x) + x,
        lambda x, itself: ifelse(pt.any(x > 0), itself(x), x),
        lambda x, itself: Elemwise(Composite([a := ps.float64()], [itself.scalar_op(a)]))(x),
    ],
)
def test_a_definition_that_calls_its_own_op_is_refused_with_its_line(expression):
    itself = Elemwise(Doubled(upgrade_to_float, name="doubled"))
    define(Doubled)(lambda x: expression(x, itself))
    x = pt.vector("x")
    line = rf"{re.escape(__file__)}:\d+"
    with pytest.raises(UnsupportedOpError, match=rf"definition of Doubled at {line} calls itself"):
        export_onnx([x], itself(x))


def test_definitions_on_axes_that_call_each_other_are_refused_with_their_lines():
    class Sum(Trace):
        """Sum of all elements."""

    define(Trace, "(n,n)->()")(lambda a: Sum()(a) + 1)
    define(Sum, "(n,n)->()")(lambda a: Trace()(a) - 1)
    x = pt.matrix("x")
    line = rf"{re.escape(__file__)}:\d+"
    reason = f"definition of Sum at {line}: the definition of Trace at {line} calls itself"
    with pytest.raises(UnsupportedOpError, match=reason):
        export_onnx([x], Trace()(x))


def test_a_definition_may_call_its_own_op_with_other_attributes():
    @define(PowerOf, "(n,n)->(n,n)")
    def power(a, *, exponent):
        return a if exponent == 1 else a @ PowerOf(exponent - 1)(a)

    x = pt.matrix("x")
    compare_onnx_and_py([x], PowerOf(3)(x), [np.array([[1.0, 2.0], [0.0, -1.0]])])


class PowerOf(Op):
    """Power of a matrix."""

    __props__ = ("exponent",)

    def __init__(self, exponent):
        self.exponent = exponent

    def make_node(self, a):
        return Apply(self, [a], [a.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.linalg.matrix_power(inputs[0], self.exponent)


def test_a_signature_with_other_operands_is_refused():
    with pytest.raises(ValueError, match="takes 1 operands, its signature 2"):
        define(Trace, "(n,n),(n)->()")(lambda a: a)


def test_an_elementwise_definition_may_loop():
    class Root(UnaryScalarOp):
        def impl(self, x):
            return np.sqrt(x)

    @define(Root)
    def root(x):
        steps = pytensor.scan(
            lambda y, x: (y + x / y) / 2, [], [pt.maximum(x, 1.0)], [x], 60, return_updates=False
        )
        return steps[-1]

    op = Elemwise(Root(upgrade_to_float, name="root"))
    x, m = pt.vector("x"), pt.matrix("m")
    values = [np.array([0.5, 2.0, 9.0]), np.array([[4.0], [1e10]])]
    program = compare_onnx_and_py([x, m], [op(x), op(m)], values)
    assert {f.name for f in program.model.functions.values()} == {
        "Root_float64_batch1",
        "Root_float64_batch2",
    }
    assert compile_onnx([x], op(x), verify=False)(np.zeros(0)).shape == (0,)


def test_an_expression_is_evaluated_once_for_all_models():
    sizes = []

    @define(Trace, "(n,n)->()")
    def trace(a, *, n):
        sizes.append(n)
        return pt.diagonal(a).sum()

    x, y = pt.matrix("x"), pt.matrix("y", shape=(2, 2))
    value = np.array([[1.0, 2.0], [3.0, 4.0]])
    for _ in range(2):
        results = compile_onnx([x, y], [Trace()(x), Trace()(y)], verify=False)(value, value)
        np.testing.assert_array_equal(results, [5.0, 5.0])
    assert sorted(map(str, sizes)) == ["2", "None"]


@pytest.mark.slow
def test_files_with_checks_that_hold_for_known_sizes_load_without_warnings(capfd):
    a = pt.matrix("a", shape=(4, 4))
    file = export_onnx([a], pt.linalg.solve_triangular(pt.linalg.cholesky(a), a), verify=False)
    onnxruntime.InferenceSession(file.proto.SerializeToString())
    assert not capfd.readouterr().err
