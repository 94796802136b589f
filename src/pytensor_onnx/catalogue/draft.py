"""The operators of the ONNX draft of 6 July 2026, as functions in a domain with its date.

The domain has a dtype, as functions have no types: that of the numbers. The seed, the state, the
order of outputs and the attributes are those of the draft; the cipher is Threefry-2x32 as in JAX.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx
import pytensor.tensor as pt
from onnx import FunctionProto, NodeProto, TensorProto, helper
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.catalogue.compile_entry import OPSET, Compiled, compile_entry
from pytensor_onnx.catalogue.entry import Argument, Entry, Make
from pytensor_onnx.prng import init_prng, philox, random_normal, random_uniform, split_prng

DATE = "2026_07_06"
DRAFT_DTYPES = ("float16", "float32", "float64")
MOST = 16
"""Largest number of states of a split, as a function has a fixed number of outputs."""

_ELEMENTS = {
    "float16": TensorProto.FLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
}
_STATE = Argument("prng_state", "two words of 32 bits", "int64", ("2",), False, (0, 42))
_UNIFORMS, _NORMALS = "StandardUniform", "StandardNormal"


def draft_domain(dtype: str) -> str:
    """Return the domain of the draft's operators for a dtype.

    Examples
    --------
    >>> draft_domain("float32")
    'pytensor.draft_2026_07_06.float32'
    """
    return f"pytensor.draft_{DATE}.{dtype}"


def _entries(dtype: str) -> Iterator[Entry]:
    seed = Argument("seed", "any integer", "int64", (), False, 42)
    data = Argument("data", "one integer for each state", "int64", ("n",), False, (7, 9))
    states = tuple(Argument(f"state_{i}", "", "int64", ("2",), False) for i in range(MOST))
    size = Argument("n", "number of numbers", "int64", (), False, 5)
    numbers = Argument("numbers", core=("n",), is_batched=False)
    after = Argument("next_prng_state", "successor", "int64", ("2",), False)

    def entry(
        name: str,
        about: str,
        inputs: Sequence[Argument],
        outputs: Sequence[Argument],
        make: Make,
    ) -> Entry:
        return Entry(name, "draft", "draft", about, tuple(inputs), tuple(outputs), make, "plain")

    def by_data(state: V, data: V) -> list[V]:
        padded = pt.concatenate([data, pt.zeros(MOST, dtype="int64")])[:MOST]
        return split_prng(state, data=pt.specify_shape(padded, (MOST,)))

    yield entry("InitPRNG", "State of a seed.", [seed], [_STATE], init_prng)
    yield entry(
        "SplitPRNG",
        f"{MOST} states of independent streams; a node leaves the names of others empty.",
        [_STATE],
        states,
        lambda state: split_prng(state, MOST),
    )
    yield entry(
        "SplitPRNGByData",
        "SplitPRNG with the optional input data: states of independent streams for integers.",
        [_STATE, data],
        states,
        by_data,
    )
    for name, draw in ((_UNIFORMS, random_uniform), (_NORMALS, random_normal)):
        yield entry(
            name,
            "Numbers of a standard distribution, and the successor.",
            [_STATE, size],
            [numbers, after],
            lambda state, n, draw=draw: list(draw(state, (n,), dtype=dtype)),
        )
    key = Argument("key", "two words", "int64", ("2",), False, (0, 0))
    counters = Argument("counters", "", "int64", ("n", "4"), False, ((0, 0, 0, 0),))
    words = Argument("words", "of 32 bits", "int64", ("n", "4"), False)
    about = "Blocks of Philox-4x32-10, as in Random123."
    yield entry("Philox4x32", about, [key, counters], [words], philox)


def draft_functions(dtype: str) -> Iterator[Compiled]:
    """Yield the functions of the draft for a dtype, called ones first."""
    domain = draft_domain(dtype)
    last: Compiled | None = None
    for entry in _entries(dtype):
        last = compile_entry(entry, dtype, domain)
        yield last
    assert last is not None
    for name, numbers, parameters in (
        ("RandomUniform", _UNIFORMS, {"low": 0.0, "high": 1.0}),
        ("RandomNormal", _NORMALS, {"mean": 0.0, "scale": 1.0}),
    ):
        for is_like in (False, True):
            function = _random(f"{name}{'Like' * is_like}", numbers, parameters, dtype, is_like)
            yield Compiled(last.entry, dtype, function, ())


def _random(
    name: str, numbers: str, parameters: dict[str, float], dtype: str, is_like: bool
) -> FunctionProto:
    """Return an operator of a shape, or of a tensor whose shape it takes."""
    domain = draft_domain(dtype)
    node = helper.make_node
    nodes: list[NodeProto] = [
        node("Shape", ["input"], ["sizes"])
        if is_like
        else _by_attribute("sizes", "value_ints", "shape", onnx.AttributeProto.INTS),
        node("ReduceProd", ["sizes"], ["n"], keepdims=0),
        node(numbers, ["prng_state", "n"], ["numbers", "next_prng_state"], domain=domain),
    ]
    for parameter in parameters:
        nodes += [
            _by_attribute(
                f"{parameter}_float", "value_float", parameter, onnx.AttributeProto.FLOAT
            ),
            node("Cast", [f"{parameter}_float"], [parameter], to=_ELEMENTS[dtype]),
        ]
    if "low" in parameters:
        nodes += [
            node("Sub", ["high", "low"], ["room"]),
            node("Mul", ["numbers", "room"], ["scaled"]),
            node("Add", ["scaled", "low"], ["moved"]),
            node("Max", ["moved", "low"], ["flat"]),
        ]
    else:
        nodes += [
            node("Mul", ["numbers", "scale"], ["scaled"]),
            node("Add", ["scaled", "mean"], ["flat"]),
        ]
    nodes.append(node("Reshape", ["flat", "sizes"], ["output"], allowzero=1))
    function = helper.make_function(
        domain,
        name,
        ["input", "prng_state"] if is_like else ["prng_state"],
        ["output", "next_prng_state"],
        nodes,
        [helper.make_opsetid("", OPSET), helper.make_opsetid(domain, 1)],
        [] if is_like else ["shape"],
        [helper.make_attribute(k, np.float32(v).item()) for k, v in parameters.items()],
    )
    function.doc_string = (
        f"{name} of the draft of {DATE.replace('_', '-')} for {dtype}: numbers and the successor."
    )
    return function


def _by_attribute(output: str, field: str, attribute: str, kind: int) -> NodeProto:
    """Return a constant that an attribute of the call has."""
    node = helper.make_node("Constant", [], [output])
    reference = node.attribute.add()
    reference.name, reference.ref_attr_name, reference.type = field, attribute, kind
    return node
