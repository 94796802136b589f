import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from numba_networks import NumbaFunction
from pytensor.compile.mode import Mode
from pytensor.graph.rewriting.db import RewriteDatabaseQuery

from pytensor_onnx import export_function_onnx, nn
from tests.conftest import PY

DTYPES = ("float32", "float64")
FUNCTIONS = {1: (nn.conv1d, nn.conv1d_transpose), 2: (nn.conv2d, nn.conv2d_transpose)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "ranks"),
    [
        ("float32", [1]),
        *(pytest.param(dtype, [1, 2], marks=pytest.mark.compiled) for dtype in DTYPES),
    ],
)
def test_networks_of_any_rank_learn_in_numba_as_by_definition(dtype, ranks):
    rng = np.random.default_rng(0)
    inputs, values, outputs = [], [], []
    for rank in ranks:
        conv, transpose = FUNCTIONS[rank]
        x = pt.tensor(f"x{rank}", shape=(None,) * (2 + rank), dtype=dtype)
        w = pt.tensor(f"w{rank}", shape=(6, 2, 3, 2)[: 2 + rank], dtype=dtype)
        b = pt.tensor(f"b{rank}", shape=(6,), dtype=dtype)
        pads, strides = ((1, 2), (0, 1))[:rank], (2, 1)[:rank]
        y = conv(x, w, pads, strides, num_groups=2, bias=b)
        z = nn.max_pool(y, 2, stride=1)
        back = transpose(z, w, strides, pads, groups=2)
        inputs += [x, w, b]
        values += [rng.normal(size=size) for size in ((3, 4, 9, 8)[: 2 + rank], w.type.shape, 6)]
        outputs += [z, back, *pt.grad((back**2).sum(), [x, w, b])]
    values = [value.astype(dtype) for value in values]
    in_numba = pytensor.function(inputs, outputs, mode="NUMBA")
    with pytensor.config.change_flags(cxx=""):
        expected = pytensor.function(inputs, outputs, mode=PY)(*values)
    names = {
        type(node.op.op).__name__
        for node in in_numba.maker.fgraph.apply_nodes
        if isinstance(node.op, NumbaFunction)
    }
    assert names == {"Conv", "ConvTranspose", "ConvFilterGradient", "MaxPool", "MaxPoolGradient"}
    # Sums over hundreds of products, in another order.
    rtol = 1e-4 if dtype == "float32" else 1e-11
    for a, b in zip(in_numba(*values), expected, strict=True):
        assert a.dtype == dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)
    small = [np.ones((3, 4, 1), dtype), *values[1:]]
    with pytest.raises(ValueError, match="a window of a pool is larger than the padded array"):
        in_numba(*small)


def test_functions_with_them_are_exported_as_the_operations():
    x, w = pt.tensor4("x", dtype="float32"), pt.tensor4("w", dtype="float32")
    results = [nn.max_pool(nn.conv2d(x, w), 2)]
    results += pt.grad(results[0].sum(), [w])
    with_functions = Mode("py", RewriteDatabaseQuery(include=["numba_networks"]))
    function = pytensor.function([x, w], results, mode=with_functions)
    assert any(isinstance(node.op, NumbaFunction) for node in function.maker.fgraph.apply_nodes)
    program = export_function_onnx(function, assume_finite=True)
    assert {"Conv", "MaxPool"} <= {node.op_type for node in program.proto.graph.node}


@pytest.mark.parametrize("mode", [PY, "ONNX"])
def test_other_modes_have_no_numba_functions(mode):
    x, w = pt.tensor4("x"), pt.tensor4("w")
    with pytensor.config.change_flags(cxx=""):
        function = pytensor.function([x, w], nn.max_pool(nn.conv2d(x, w), 2), mode=mode)
    assert not any(isinstance(node.op, NumbaFunction) for node in function.maker.fgraph.apply_nodes)
