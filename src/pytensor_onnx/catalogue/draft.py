"""The operators of the ONNX draft of 6 July 2026, as functions in a domain with its date.

The domain has a dtype, as functions have no types: that of the numbers. The seed, the state, the
order of outputs and the attributes are those of the draft; the cipher is Threefry-2x32 as in JAX.
Attributes `low` and `high` of integers are integers, and must be given. Numbers of bfloat16 are
computed in float32, each operation rounded; those of bool are integers that are not zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytensor.tensor as pt
from onnx import FunctionProto, NodeProto, TensorProto, helper
from pytensor.tensor.variable import TensorVariable as V

from pytensor_onnx.catalogue.compile_entry import OPSET, Compiled, compile_entry
from pytensor_onnx.catalogue.entry import Argument, Entry, Make
from pytensor_onnx.functions.random.ciphers import integers, normal_numbers, uniform_numbers
from pytensor_onnx.prng import init_prng, philox, split_prng

DATE = "2026_07_06"
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
DRAFT_DTYPES = (*FLOATS, *INTEGERS)
MOST = 16
"""Largest number of states of a split, as a function has a fixed number of outputs."""

_STATE = Argument("prng_state", "two words of 32 bits", "int64", ("2",), False, (0, 42))
_UNIFORMS, _NORMALS, _WHOLE = "StandardUniform", "StandardNormal", "UniformIntegers"
_IN_ARRAYS = {"bfloat16": "float32", "bool": "uint8"}
"""Dtypes of the arrays that hold numbers of dtypes that PyTensor lacks or has no arithmetic for."""


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
    arrays = _IN_ARRAYS.get(dtype, dtype)
    numbers = Argument("numbers", "", arrays, core=("n",), is_batched=False)
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
    if dtype in INTEGERS:
        low, high = (Argument(x, "a bound", "int64", (), False, 3) for x in ("low", "high"))

        def draw_integers(state: V, n: V, low: V, high: V) -> list[V]:
            following, key = split_prng(state)
            span, start = (high - low).astype("uint64"), low.astype("uint64")
            return [integers(key, n, span, start, arrays), following]

        about = "Integers of the range from low to high, without high, and the successor."
        yield entry(_WHOLE, about, [_STATE, size, low, high], [numbers, after], draw_integers)
        return
    for name, draw in ((_UNIFORMS, uniform_numbers), (_NORMALS, normal_numbers)):

        def draw_numbers(state: V, n: V, draw: Any = draw) -> list[V]:
            following, key = split_prng(state)
            return [draw(dtype)(key, n), following]

        about = "Numbers of a standard distribution, and the successor."
        yield entry(name, about, [_STATE, size], [numbers, after], draw_numbers)
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
        last = compile_entry(entry, dtype if dtype in ("float16", "float64") else "float32", domain)
        yield last
    assert last is not None
    forms = (_OF_INTEGERS,) if dtype in INTEGERS else _OF_FLOATS
    for form in forms:
        for is_like in (False, True):
            yield Compiled(last.entry, dtype, _random(form, dtype, is_like), ())


@dataclass(frozen=True)
class _Form:
    """An operator of the draft, the function that draws for it, and its attributes."""

    name: str
    numbers: str
    parameters: Mapping[str, float]


_OF_FLOATS = (
    _Form("RandomUniform", _UNIFORMS, {"low": 0.0, "high": 1.0}),
    _Form("RandomNormal", _NORMALS, {"mean": 0.0, "scale": 1.0}),
)
_OF_INTEGERS = _Form("RandomUniform", _WHOLE, {})


def _random(form: _Form, dtype: str, is_like: bool) -> FunctionProto:
    """Return an operator of a shape, or of a tensor whose shape it takes."""
    domain = draft_domain(dtype)
    name = f"{form.name}{'Like' * is_like}"
    nodes: list[NodeProto] = [
        helper.make_node("Shape", ["input"], ["sizes"])
        if is_like
        else _by_attribute("sizes", "value_ints", "shape", onnx.AttributeProto.INTS),
        helper.make_node("ReduceProd", ["sizes"], ["n"], keepdims=0),
    ]
    attributes = [] if is_like else ["shape"]
    drawn, results = ["prng_state", "n"], ["numbers", "next_prng_state"]
    if form.parameters:
        nodes.append(helper.make_node(form.numbers, drawn, results, domain=domain))
        nodes += _scaled(form, dtype)
    else:
        attributes += ["low", "high"]
        nodes += [
            _by_attribute(x, "value_int", x, onnx.AttributeProto.INT) for x in ("low", "high")
        ]
        drawn += ["low", "high"]
        nodes.append(helper.make_node(form.numbers, drawn, results, domain=domain))
        nodes.append(_cast("numbers", "flat", dtype))
    nodes.append(helper.make_node("Reshape", ["flat", "sizes"], ["output"], allowzero=1))
    function = helper.make_function(
        domain,
        name,
        ["input", "prng_state"] if is_like else ["prng_state"],
        ["output", "next_prng_state"],
        nodes,
        [helper.make_opsetid("", OPSET), helper.make_opsetid(domain, 1)],
        attributes,
        [helper.make_attribute(k, np.float32(v).item()) for k, v in form.parameters.items()],
    )
    function.doc_string = (
        f"{name} of the draft of {DATE.replace('_', '-')} for {dtype}: numbers and the successor."
    )
    return function


def _scaled(form: _Form, dtype: str) -> Iterator[NodeProto]:
    """Yield the nodes that scale numbers by attributes, with a rounding for each operation."""
    for parameter in form.parameters:
        given = f"{parameter}_float"
        yield _by_attribute(given, "value_float", parameter, onnx.AttributeProto.FLOAT)
        yield from _as(given, parameter, dtype)
    if "low" in form.parameters:
        operations = [
            ("Sub", "high", "low", "room"),
            ("Mul", "numbers", "room", "scaled"),
            ("Add", "scaled", "low", "moved"),
            ("Max", "moved", "low", "drawn"),
        ]
    else:
        operations = [("Mul", "numbers", "scale", "scaled"), ("Add", "scaled", "mean", "drawn")]
        if dtype == "bfloat16":
            yield from _as("numbers", "rounded", dtype)
            operations[0] = ("Mul", "rounded", "scale", "scaled")
    for op_type, x, y, result in operations:
        if dtype == "bfloat16":
            yield helper.make_node(op_type, [x, y], [f"{result}_exact"])
            yield from _as(f"{result}_exact", result, dtype)
        else:
            yield helper.make_node(op_type, [x, y], [result])
    yield _cast("drawn", "flat", dtype)


def _as(x: str, result: str, dtype: str) -> Iterator[NodeProto]:
    """Yield the nodes that round a float to a dtype, in an array of its arithmetic."""
    if dtype == "bfloat16":
        yield _cast(x, f"{result}_narrow", dtype)
        yield _cast(f"{result}_narrow", result, "float32")
    else:
        yield _cast(x, result, dtype)


def _cast(x: str, result: str, dtype: str) -> NodeProto:
    return helper.make_node("Cast", [x], [result], to=element_type(dtype))


def element_type(dtype: str) -> int:
    """Return the element type of ONNX for the name of a dtype.

    Examples
    --------
    >>> element_type("bfloat16"), element_type("bool")
    (16, 9)
    """
    if dtype == "bfloat16":
        return int(TensorProto.BFLOAT16)
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def _by_attribute(output: str, field: str, attribute: str, kind: int) -> NodeProto:
    """Return a constant that an attribute of the call has."""
    node = helper.make_node("Constant", [], [output])
    reference = node.attribute.add()
    reference.name, reference.ref_attr_name, reference.type = field, attribute, kind
    return node
