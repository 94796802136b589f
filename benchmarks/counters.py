"""Generators of a counter in operators: Threefry and Philox beside hidden and compiled states.

``python -m benchmarks.counters`` prints the table of docs/understanding/probabilistic-onnx.md.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import onnx
import onnxruntime
import pytensor.tensor as pt
from onnx import helper
from pytensor.tensor.variable import TensorVariable

from benchmarks.timing import Table, interleaved
from pytensor_onnx import SessionOptions, compile_onnx, prng
from pytensor_onnx.ops.random.draws import StandardNormal, StandardUniform, state_variable

SIZE = 1_000_000


def philox_uniform(key: TensorVariable, n: TensorVariable) -> TensorVariable:
    """Return uniform numbers of float32, four of each block of Philox-4x32-10."""
    counters = pt.zeros((n // 4, 4), dtype="int64")[:, 0].set(pt.arange(n // 4))
    words = prng.philox(key, counters).flatten().astype("uint32")
    return (words // np.uint32(2**9)).astype("float32") * np.float32(2.0**-23)


def _plain(inputs: list[Any], output: Any, *arguments: Any) -> Callable[[], Any]:
    options = SessionOptions(threads=1, kernels=False)
    f = compile_onnx(inputs, output, session_options=options, verify=False)
    return lambda: f(*arguments)


def _compiled(inputs: list[Any], output: Any, *arguments: Any) -> Callable[[], Any]:
    options = SessionOptions(threads=1)
    f = compile_onnx(inputs, output, session_options=options, verify=False)
    return lambda: f(*arguments)


def _hidden(operator: str) -> Callable[[], Any]:
    node = helper.make_node(operator, [], ["y"], shape=[SIZE], seed=1.0)
    value = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [SIZE])
    graph = helper.make_graph([node], "graph", [], [value])
    opsets = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return lambda: session.run(None, {})


def _by_jax(name: str) -> Callable[[], Any]:
    draw = jax.jit(lambda key: getattr(jax.random, name)(key, (SIZE,), "float32"))
    key = jax.random.key(1)
    return lambda: draw(key).block_until_ready()


def measure(rounds: int = 10) -> Table:
    """Time a million numbers of float32 by each generator, which take turns."""
    state, n = pt.vector("state", dtype="int64", shape=(2,)), pt.lscalar("n")
    given = (np.array([0, 1]), SIZE)
    counter, start = state_variable("counter"), (np.array([0, 1, 0], "uint64"), SIZE)
    flat, bell = (
        {dtype: kind(dtype)(counter, n)[1] for dtype in ("float32", "float64")}
        for kind in (StandardUniform, StandardNormal)
    )
    uniform, normal = prng.random_uniform(state, (n,)), prng.random_normal(state, (n,))
    calls = {
        "uniform, Threefry-2x32 as in JAX": _compiled([state, n], uniform.values, *given),
        "uniform, Threefry-2x32, without kernels": _plain([state, n], uniform.values, *given),
        "uniform, Philox-4x32-10": _compiled([state, n], philox_uniform(state, n), *given),
        "uniform, Threefry-2x64 of this package": _compiled([counter, n], flat["float32"], *start),
        "uniform of float64, Threefry-2x64": _compiled([counter, n], flat["float64"], *start),
        "uniform, Threefry-2x64, without kernels": _plain([counter, n], flat["float32"], *start),
        "uniform, ONNX Runtime's operator": _hidden("RandomUniform"),
        "uniform, JAX": _by_jax("uniform"),
        "normal, Threefry-2x32 and the inverse": _compiled([state, n], normal.values, *given),
        "normal, Threefry-2x32, without kernels": _plain([state, n], normal.values, *given),
        "normal, Threefry-2x64 and Box-Muller": _compiled([counter, n], bell["float32"], *start),
        "normal of float64, Threefry-2x64": _compiled([counter, n], bell["float64"], *start),
        "normal, Threefry-2x64, without kernels": _plain([counter, n], bell["float32"], *start),
        "normal, ONNX Runtime's operator": _hidden("RandomNormal"),
        "normal, JAX": _by_jax("normal"),
    }
    best = interleaved(calls, rounds=rounds, seconds=0)
    table = Table("Counters", ["a million numbers of float32", "ms"], note="One thread.")
    table.rows = [[name, f"{1e3 * seconds:.1f}"] for name, seconds in best.items()]
    return table


if __name__ == "__main__":
    print(measure().markdown())
