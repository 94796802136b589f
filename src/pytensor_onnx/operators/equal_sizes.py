"""Sizes that operators need to be equal, by operator.

A rule yields the pairs of dimensions that an operator refuses if they differ. Axes that broadcast
have none.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from pytensor_onnx.operators.dims import Dim, Dims, dims_of, product_dim

Pair = tuple[Dim, Dim]
Rule = Callable[[Sequence[Dims | None], Mapping[str, Any]], Iterator[Pair]]


def equal_sizes(
    op_type: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any]
) -> Iterator[Pair]:
    """Yield the pairs of dimensions that an operator needs to be equal.

    Parameters
    ----------
    op_type
        Name of the operator.
    inputs
        Its operands, None where one is left out.
    attributes
        Its attributes.

    Examples
    --------
    >>> x, w = ir.val("x", shape=("n", "m")), ir.val("w", shape=(3, "k"))
    >>> list(equal_sizes("MatMul", [x, w], {})), list(equal_sizes("Add", [x, w], {}))
    ([('m', 3)], [])
    """
    rule = _RULES.get(op_type)
    return iter(()) if rule is None else rule(list(map(dims_of, inputs)), attributes)


def _by_letters(*operands: str) -> Rule:
    """Return the rule that axes of one letter have equal sizes; a digit is a size, a point any.

    Examples
    --------
    >>> list(_by_letters("n.4", "n")([("a", "b", "c"), ("d",)], {}))
    [('c', 4), ('a', 'd')]
    """

    def rule(inputs: Sequence[Dims | None], attributes: Mapping[str, Any]) -> Iterator[Pair]:
        first: dict[str, Dim] = {str(size): size for size in range(10)}
        for letters, dims in zip(operands, inputs, strict=False):
            for letter, dim in zip(letters, dims or (), strict=False):
                if letter in first:
                    yield (first[letter], dim) if not letter.isdigit() else (dim, first[letter])
                elif letter != ".":
                    first[letter] = dim

    return rule


def _product(inputs: Sequence[Dims | None], attributes: Mapping[str, Any]) -> Iterator[Pair]:
    a, b = inputs[:2]
    if a and b:
        yield a[-1], b[-2] if len(b) > 1 else b[-1]


def _gemm(inputs: Sequence[Dims | None], attributes: Mapping[str, Any]) -> Iterator[Pair]:
    a, b = inputs[:2]
    if a and b:
        yield a[0 if attributes.get("transA") else 1], b[1 if attributes.get("transB") else 0]


def _convolution(inputs: Sequence[Dims | None], attributes: Mapping[str, Any]) -> Iterator[Pair]:
    images, filters, *bias = inputs
    if images and filters:
        yield images[1], product_dim([filters[1], attributes.get("group", 1)])
        if bias and bias[0]:
            yield filters[0], bias[0][0]


def _transposed_convolution(
    inputs: Sequence[Dims | None], attributes: Mapping[str, Any]
) -> Iterator[Pair]:
    images, filters, *bias = inputs
    if images and filters:
        yield images[1], filters[0]
        if bias and bias[0]:
            yield product_dim([filters[1], attributes.get("group", 1)]), bias[0][0]


def _concatenation(inputs: Sequence[Dims | None], attributes: Mapping[str, Any]) -> Iterator[Pair]:
    first, *others = inputs
    for dims in others:
        for i, pair in enumerate(zip(first or (), dims or (), strict=False)):
            if i != attributes["axis"] % len(first or ()):
                yield pair


def _attention(inputs: Sequence[Dims | None], attributes: Mapping[str, Any]) -> Iterator[Pair]:
    """Yield the batches, and the numbers of keys and values; PyTensor repeats a batch of one."""
    q, k, v = inputs[:3]
    past = inputs[4:]
    batches = [dims[0] for dims in (q, k, v, *past) if dims and dims[0] != 1]
    yield from ((batches[0], size) for size in batches[1:])
    length = 1 if attributes.get("q_num_heads") else 2
    if k and v:
        yield k[length], v[length]
    if len(past) > 1 and past[0] and past[1]:
        yield past[0][2], past[1][2]


def _scattering_nd(inputs: Sequence[Dims | None], attributes: Mapping[str, Any]) -> Iterator[Pair]:
    data, indices, updates = inputs
    if data and indices and updates and isinstance(indices[-1], int):
        yield from zip(indices[:-1] + data[indices[-1] :], updates, strict=False)


def _gathering_nd(inputs: Sequence[Dims | None], attributes: Mapping[str, Any]) -> Iterator[Pair]:
    data, indices = inputs
    count = attributes.get("batch_dims", 0)
    yield from zip((data or ())[:count], (indices or ())[:count], strict=False)


def _same(first: int, second: int) -> Rule:
    """Return the rule that two operands have equal shapes."""

    def rule(inputs: Sequence[Dims | None], attributes: Mapping[str, Any]) -> Iterator[Pair]:
        yield from zip(inputs[first] or (), inputs[second] or (), strict=False)

    return rule


_RECURRENT = _by_letters("tbi", "dgi", "dgh", "d.", "b", "dbh", "dbh", "d.")
_RULES: dict[str, Rule] = {
    "MatMul": _product,
    "Gemm": _gemm,
    "Conv": _convolution,
    "ConvTranspose": _transposed_convolution,
    "Concat": _concatenation,
    "Attention": _attention,
    "BatchNormalization": _by_letters(".c", "c", "c", "c", "c"),
    "InstanceNormalization": _by_letters(".c", "c", "c"),
    # From opset 21 on; the operator is not emitted for older ones.
    "GroupNormalization": _by_letters(".c", "c", "c"),
    "LSTM": _RECURRENT,
    "GRU": _RECURRENT,
    "RNN": _RECURRENT,
    "NonMaxSuppression": _by_letters("bn4", "b.n"),
    "MaxUnpool": _same(0, 1),
    "ScatterElements": _same(1, 2),
    "ScatterND": _scattering_nd,
    "GatherND": _gathering_nd,
}
