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

SIZE = 1_000_000


def philox(counters: TensorVariable, key: TensorVariable) -> list[TensorVariable]:
    """Return the four words of 32 bits of Philox-4x32-10 for each counter (Salmon et al., 2011)."""

    def word(number: int) -> TensorVariable:
        return pt.constant(np.uint64(number))

    low, high = word(2**32 - 1), word(2**32)
    zero = pt.zeros_like(counters)
    a, b, c, d = counters, zero, zero, zero
    first, second = key[0], key[1]
    for _ in range(10):
        x, y = word(0xD2511F53) * a, word(0xCD9E8D57) * c
        a, b, c, d = (y // high) ^ b ^ first, y & low, (x // high) ^ d ^ second, x & low
        first, second = (first + word(0x9E3779B9)) & low, (second + word(0xBB67AE85)) & low
    return [a, b, c, d]


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
    key, rng = pt.vector("key", dtype="uint64"), pt.random.rng("rng")
    words = philox(pt.arange(n // 4).astype("uint64"), key)
    numbers = [(x // np.uint64(2**9)).astype("float32") * np.float32(2.0**-23) for x in words]
    given = (np.array([0, 1]), SIZE)
    generator = np.random.default_rng(1)
    uniform, normal = prng.random_uniform(state, (n,)), prng.random_normal(state, (n,))
    calls = {
        "uniform, Threefry-2x32 as in JAX": _compiled([state, n], uniform.values, *given),
        "uniform, Philox-4x32-10": _compiled(
            [key, n], pt.concatenate(numbers), np.zeros(2, "uint64"), SIZE
        ),
        "uniform, Threefry-2x64 of this package": _compiled(
            [rng], rng.uniform(size=SIZE)[1].astype("float32"), generator
        ),
        "uniform, ONNX Runtime's operator": _hidden("RandomUniform"),
        "uniform, JAX": _by_jax("uniform"),
        "normal, Threefry-2x32 and the inverse": _compiled([state, n], normal.values, *given),
        "normal, Threefry-2x64 and Box-Muller": _compiled(
            [rng], rng.normal(size=SIZE)[1].astype("float32"), generator
        ),
        "normal, ONNX Runtime's operator": _hidden("RandomNormal"),
        "normal, JAX": _by_jax("normal"),
    }
    best = interleaved(calls, rounds=rounds, seconds=0)
    table = Table("Counters", ["a million numbers of float32", "ms"], note="One thread.")
    table.rows = [[name, f"{1e3 * seconds:.1f}"] for name, seconds in best.items()]
    return table


if __name__ == "__main__":
    print(measure())
