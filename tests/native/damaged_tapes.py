"""Tapes of many models, and damaged copies of them, which no reader may trust."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pytensor_onnx.kernels.graph_scope import constant_of, operator_numbers
from pytensor_onnx.kernels.regions import fuse, whole_region
from pytensor_onnx.kernels.tape import MAGIC, with_digest
from tests.kernels import test_arrays, test_chains
from tests.kernels.conftest import model_of, values

HEAD = 16
"""Bytes of a tape before the words of which the digest is."""
LAST = 2**63 - 1
EXTREMES = [-1, 0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 255, 2**16, 2**20, 2**24, 2**30, 2**31 - 1, 2**31]
EXTREMES += [2**32, 2**40, 2**61, 2**62, LAST, -2, -8, -(2**31), -(2**32), -LAST, -LAST - 1]
DTYPES = [1, 2, 6, 7, 9, 11, 12, 13]
NAMES = ["dense network", "lstm", "reductions", "indices", "writes at indices", "sorting"]
NAMES += ["recurrence", "loop until a condition", "cholesky", "uniform draws", "masks"]
NAMES += ["convolutional network", "gru", "transformer", "embedding", "training step", "integers"]
NAMES += ["products", "fixed number of steps", "linear equations", "svd", "activations"]
NAMES += ["gamma functions", "normal draws", "complex numbers", "batch norm and residual"]


@dataclass(frozen=True)
class Seed:
    """A tape with values for its inputs.

    Attributes
    ----------
    name
        Name of its model.
    words
        Its words after the digest.
    inputs
        Values of the inputs, and whether they are constants of the model.
    """

    name: str
    words: tuple[int, ...]
    inputs: tuple[tuple[np.ndarray, bool], ...]

    @property
    def tape(self) -> bytes:
        """The tape with its digest."""
        return with_digest(np.array(self.words, "int64").tobytes())

    def message(self, tape: bytes | None = None) -> bytes:
        """Return what `run_tapes.c` reads."""
        tape = self.tape if tape is None else tape
        parts = [_words(len(tape) // 8), tape, _words(len(self.inputs))]
        for value, is_constant in self.inputs:
            data = value.tobytes()
            data += bytes(-len(data) % 8)
            dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
            parts += [_words(dtype, is_constant, value.ndim, *value.shape, len(data) // 8), data]
        text = b"".join(parts)
        return _words(len(text)) + text


def _words(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}q", *words)


# Models.


def seeds_without_loops() -> list[Seed]:
    """Return tapes of single operators and of chains, which take a bounded time however damaged."""
    return [seed for seed in (*_operators(), *_chains(3)) if seed is not None]


def seeds() -> list[Seed]:
    """Return tapes of single operators, of chains and of small models of many kinds."""
    from tests.runtimes.portable_models import MODELS

    found = [*_operators(), *_chains(12), *_sizes_from_values()]
    for name in NAMES:
        model = MODELS[name]()
        program = model.export("web")
        names = [str(value.name) for value in program.inputs]
        feed = dict(zip(names, program.conversion.arrays(list(model.values)), strict=True))
        feed |= {state.name: state.value for state in program.conversion.states}
        found.append(seed_of(name, program.proto, feed))
    made = [seed for seed in found if seed is not None]
    assert len(made) > 0.8 * len(found)
    return made


def seed_of(name: str, model: onnx.ModelProto, feed: dict[str, Any]) -> Seed | None:
    """Return the tape of a model, None where no tape is all of it."""
    fused = fuse(model.SerializeToString(), every_size=True).model
    graph = onnx.load_model_from_string(fused).graph if fused else onnx.GraphProto()
    region = whole_region(graph)
    if region is None:
        return None
    constants = {x.name: numpy_helper.to_array(x) for x in graph.initializer}
    constants |= {x.output[0]: constant_of(x) for x in graph.node if x.op_type == "Constant"}
    inputs = [(feed.get(x, constants.get(x)), x not in feed) for x in region.input]
    tape = region.attribute[0].s
    words = np.frombuffer(tape, "int64")
    assert words[0] == MAGIC
    made = tuple((np.array(value, order="C"), is_constant) for value, is_constant in inputs)
    return Seed(name, tuple(words[2:].tolist()), made)


def _model(nodes: Sequence[onnx.NodeProto], feed: dict, outputs: dict, constants: dict) -> Any:
    # A second node, since a region has two at least.
    first = next(iter(outputs))
    added = helper.make_node("Identity", [first], ["same"])
    return model_of([*nodes, added], feed, outputs | {"same": outputs[first]}, constants)


def _operators() -> Iterator[Seed | None]:
    """Yield the tapes of operators that move, reduce and multiply arrays."""
    ints, double, wide = test_arrays.ints, TensorProto.DOUBLE, TensorProto.INT64
    cases: list[tuple[str, Any, list, dict]] = [*test_arrays.MOVES]
    cases += [(name, (5, 4, 6), [ints(1)], {}) for name in (*test_arrays.SUMS, "ReduceProd")]
    cases += [(name, (5, 4, 6), [ints(0, 2)], {"keepdims": 0}) for name in test_arrays.EXTREMES]
    cases += [(name, (5, 4), [], {"axis": 1}) for name in ("ArgMax", "Softmax", "LogSoftmax")]
    cases += [("CumSum", (4, 3), [ints(1)[0]], {}), ("MatMul", (3, 4), [np.ones((4, 5))], {})]
    cases += [("MatMul", (2, 1, 3, 4), [np.ones((5, 4, 2))], {})]
    cases += [("Gemm", (3, 4), [np.ones((4, 5)), np.ones(5)], {"alpha": 0.5})]
    cases += [("ScatterElements", (4, 3), [ints(0, -1)[None], np.ones((1, 2))], {"axis": 1})]
    cases += [("ScatterND", (4, 3), [ints(1, -2)[:, None], np.ones((2, 3))], {"reduction": "add"})]
    cases += [("Concat", (2, 3), [np.ones((2, 1))], {"axis": 1}), ("Pow", (40,), [np.ones(())], {})]
    for name, shape, others, attributes in cases:
        outputs = {"out": wide if name == "ArgMax" else double}
        constants = {f"c{i}": np.asarray(x) for i, x in enumerate(others)}
        node = helper.make_node(name, ["a", *constants], ["out"], **attributes)
        feed = {"a": values("float64", shape)}
        yield seed_of(name, _model([node], feed, outputs, constants), feed)
        if name in ("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"):
            feed |= constants
            yield seed_of(f"{name} of inputs", _model([node], feed, outputs, {}), feed)
    feed = {"a": values("float64", (9, 7))}
    outputs = {"values": double, "places": wide}
    node = helper.make_node("TopK", ["a", "k"], list(outputs), axis=0)
    yield seed_of("TopK", _model([node], feed, outputs, {"k": ints(5)}), feed)
    node = helper.make_node("Split", ["a", "parts"], ["x", "y"], axis=0)
    made = _model([node], feed, {"x": double, "y": double}, {"parts": ints(4, 5)})
    yield seed_of("Split", made, feed)


def _chains(count: int) -> Iterator[Seed | None]:
    """Yield the tapes of elementwise operations."""
    for i in range(count):
        size, dtype = [33, 700, 1300][i % 3], ["float64", "float32"][i % 2]
        program = test_chains.Program(i, size, dtype)
        for _ in range(25):
            program.add_any()
        feed = test_chains.feed_of(values, dtype, size)
        names = list(dict.fromkeys([program.arrays[-1], *program.sums]))
        yield seed_of("chain", program.model(feed, names), feed)


def _sizes_from_values() -> Iterator[Seed | None]:
    """Yield the tapes of loops whose arrays have another size in each step."""
    # PyTensor takes seconds, and other tapes do without.
    import pytensor.tensor as pt

    from pytensor_onnx import export_onnx
    from pytensor_onnx.functions.loops import iterate

    x, bounds, n = pt.dvector("x"), pt.dvector("bounds"), pt.lscalar("n")

    def grows(i: Any, total: Any) -> list[Any]:
        rows = pt.arange(i % 7 + 1)[:, None] * pt.ones((1, i % 3 + 1), dtype="int64")
        return [total + rows[: pt.minimum(i, 4)].sum()]

    def slides(k: Any, total: Any, x: Any, n: Any) -> list[Any]:
        return [total + x[3 * k : 3 * k + n].sum()]

    zero, start = pt.constant(np.int64(0)), pt.constant(np.float64(0))
    [total, *_] = iterate(grows, [zero], n_steps=n, sequences=[pt.arange(n)])
    [slid, *_] = iterate(slides, [start], [x, n], n_steps=n, sequences=[pt.arange(n)])
    chosen = pt.switch(bounds.sum() > 0, x.sum(), bounds.prod())
    given = {"x": np.arange(20.0), "bounds": np.ones(3), "n": np.array(6)}
    for name, inputs, output in (
        ("growing arrays", [n], total),
        ("sliding slices", [x, n], slid),
        ("a choice", [x, bounds], chosen),
    ):
        program = export_onnx(inputs, [output], target="web", precision="float64", verify=False)
        feed = {str(value.name): given[str(value.name)] for value in inputs}
        yield seed_of(name, program.proto, feed)


# Damages.


def places_of(words: Sequence[int]) -> dict[str, list[int]]:
    """Return the positions of the words of a tape by their meanings."""
    found: dict[str, list[int]] = {
        name: []
        for name in (
            "dtype",
            "count",
            "constant",
            "data",
            "value",
            "operator",
            "sizes",
            "attribute",
        )
    }
    at = 0

    def take(kind: str, count: int = 1) -> list[int]:
        nonlocal at
        found[kind] += range(at, at + count)
        at += count
        return list(words[at - count : at])

    dtypes = take("dtype", take("count")[0])
    for _ in range(take("count")[0]):
        value, rank = take("constant", 2)
        size = int(np.prod(take("constant", rank)))
        width = helper.tensor_dtype_to_np_dtype(dtypes[value]).itemsize
        take("data", -(-size * width // 8))
    take("value", take("count")[0])
    for _ in range(take("count")[0]):
        take("value", take("count")[0])
        take("value", take("count")[0])
        for _ in range(take("count")[0]):
            take("operator")
            inputs, outputs, attributes = take("count", 3)
            take("sizes")
            take("value", inputs)
            take("value", outputs)
            take("attribute", attributes)
    assert at == len(words)
    return found


Damage = Callable[[list[int], dict[str, list[int]], random.Random], None]


def _extreme(words: list[int], places: dict[str, list[int]], rng: random.Random) -> None:
    kind = rng.choice([k for k, v in places.items() if v])
    words[rng.choice(places[kind])] = rng.choice(EXTREMES)


def _shifted(words: list[int], places: dict[str, list[int]], rng: random.Random) -> None:
    kind = rng.choice([k for k, v in places.items() if v])
    at = rng.choice(places[kind])
    words[at] = max(-(2**63), min(LAST, words[at] + rng.choice([-2, -1, 1, 2])))


def _another_size(words: list[int], places: dict[str, list[int]], rng: random.Random) -> None:
    """Change an element of a constant, which is often a size, an axis or an index."""
    if places["data"]:
        at = rng.choice(places["data"])
        words[at] = rng.choice([*EXTREMES, words[at] % LAST + 1, -(words[at] % 100)])


def _another_value(words: list[int], places: dict[str, list[int]], rng: random.Random) -> None:
    words[rng.choice(places["value"])] = rng.choice([-1, *range(len(places["dtype"]))])


def _another_operator(words: list[int], places: dict[str, list[int]], rng: random.Random) -> None:
    if places["operator"]:
        words[rng.choice(places["operator"])] = rng.randrange(len(operator_numbers()))


def _another_dtype(words: list[int], places: dict[str, list[int]], rng: random.Random) -> None:
    """Change one type, or all that are equal, so that the tape is right but for its constants."""
    given, made = words[rng.choice(places["dtype"])], rng.choice(DTYPES)
    chosen = [at for at in places["dtype"] if words[at] == given]
    for at in chosen if rng.random() < 0.7 else rng.choices(chosen):
        words[at] = made


def _another_attribute(words: list[int], places: dict[str, list[int]], rng: random.Random) -> None:
    if places["attribute"]:
        words[rng.choice(places["attribute"])] = rng.choice([*EXTREMES, rng.randrange(5)])


def _another_decision(words: list[int], places: dict[str, list[int]], rng: random.Random) -> None:
    """Have an instruction wait for other operands."""
    if places["sizes"]:
        words[rng.choice(places["sizes"])] = rng.choice([0, 1, 2, 3, 6, 7, LAST])


def _flip(words: list[int], places: dict[str, list[int]], rng: random.Random) -> None:
    at = rng.randrange(len(words))
    flipped = (words[at] ^ 1 << rng.randrange(64)) & (2**64 - 1)
    words[at] = flipped - (flipped >> 63 << 64)


def _swap(words: list[int], places: dict[str, list[int]], rng: random.Random) -> None:
    kind = rng.choice([k for k, v in places.items() if v])
    i, k = rng.choice(places[kind]), rng.choice(places[kind])
    words[i], words[k] = words[k], words[i]


def _section(words: list[int], places: dict[str, list[int]], rng: random.Random) -> None:
    """Cut the end off, or write a section twice, or leave it out."""
    i, k = sorted(rng.randrange(len(words) + 1) for _ in range(2))
    kind = rng.randrange(3)
    words[:] = [words[:k], words[:k] + words[i:], words[:i] + words[k:]][kind]


IN_PLACE: list[Damage] = [_extreme, _shifted, _another_size, _another_value, _another_operator]
IN_PLACE += [_another_dtype, _another_attribute, _another_decision, _flip, _swap]
WEIGHTS = [2, 3, 4, 3, 2, 2, 4, 2, 1, 1]


def damaged(seed: Seed, number: int) -> tuple[Seed, bytes]:
    """Return a damaged copy of a seed, the same for each number, and its tape."""
    rng = random.Random(number)
    words, places = list(seed.words), places_of(seed.words)
    for damage in rng.choices(IN_PLACE, WEIGHTS, k=rng.choice([0, 1, 1, 1, 2, 2, 3])):
        damage(words, places, rng)
    if rng.random() < 0.03:
        _section(words, places, rng)
    inputs = list(seed.inputs)
    if inputs and rng.random() < 0.3:
        i = rng.randrange(len(inputs))
        inputs[i] = _another_input(inputs[i][0], rng), inputs[i][1]
    made = replace(seed, words=tuple(words), inputs=tuple(inputs))
    tape = made.tape
    if rng.random() < 0.01:
        at = rng.randrange(len(tape))
        tape = tape[:at] + bytes([tape[at] ^ 1 << rng.randrange(8)]) + tape[at + 1 :]
    return made, tape


def _another_input(value: np.ndarray, rng: random.Random) -> np.ndarray:
    """Return a value with other elements, other sizes, another rank or another type."""
    if value.dtype.kind in "iu" and rng.random() < 0.6:
        extreme = rng.choice([x for x in EXTREMES if value.dtype.kind == "i" or x >= 0])
        return np.full_like(value, extreme & (2 ** (8 * value.itemsize - 1) - 1))
    shape = list(value.shape)
    if shape and rng.random() < 0.7:
        shape[rng.randrange(len(shape))] = rng.choice([0, 1, 2, 3, 8, 33, 513])
    else:
        shape = [rng.choice([0, 1, 2, 5]) for _ in range(rng.randrange(5))]
    if int(np.prod(shape)) > 2**16:
        shape = shape[:1]
    return np.resize(value if value.size else np.ones(1, value.dtype), shape)
