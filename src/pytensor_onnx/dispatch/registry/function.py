"""Functions of a model for definitions, in blocks of long arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.scan.op import Scan

from pytensor_onnx.dispatch.registry.basic import Lowered, onnx_funcify
from pytensor_onnx.dispatch.registry.batch_loop import with_equal_batches
from pytensor_onnx.dispatch.registry.definition_instance import (
    OPERATORS,
    Specialised,
    refuse_recursion,
    specialised,
)
from pytensor_onnx.dispatch.registry.graphs import NestedProblems, convert_inner
from pytensor_onnx.functions.registry import DEFINITIONS, Definition, definition_of
from pytensor_onnx.graph.builder import Builder, Described, Meaning
from pytensor_onnx.operators.dims import Dims, broadcast, dims_of, product_dim
from pytensor_onnx.operators.inference import dtype_of

_NO_LOWERING = onnx_funcify.dispatch(object)
# Definitions of fewer operations gain less by blocks than the choice of blocks takes. Those of more
# and those with loops always go through blocks: a second copy takes as long to load.
_FEWEST, _MOST = 70, 160


@onnx_funcify.register(Op)
def lower_defined(op: Op, node: Apply, build: Builder, *inputs: ir.Value) -> Lowered:
    """Call the function that defines an Op."""
    definition = definition_of(type(op))
    if definition is None:
        return _NO_LOWERING(op, node, build, *inputs)
    definition = definition.for_op(op, len(inputs))
    _check_ranks(definition, node, build)
    return call_definition(definition, op, node, build, inputs)


def _check_ranks(definition: Definition, node: Apply, build: Builder) -> None:
    """Refuse operands of lower rank, such as the vector of `lstsq`, which PyTensor lets pass."""
    for position, (variable, core) in enumerate(
        zip(node.inputs, definition.inputs or (), strict=False)
    ):
        rank = variable.type.ndim
        if rank < len(core):
            raise build.unsupported(
                f"operand {position} has rank {rank}, where the operation takes rank {len(core)}, "
                "and PyTensor types the result as for that rank",
                "add an axis of size one, such as x[:, None], and index the result by [..., 0]",
            )


def call_definition(
    definition: Definition, op: Op, node: Apply, build: Builder, inputs: Sequence[ir.Value]
) -> list[ir.Value]:
    """Call the function that a PyTensor expression defines.

    Parameters
    ----------
    definition
        Expression registered for the Op.
    op
        The Op, without the Elemwise or Blockwise that may be around it.
    node
        Apply node: the static sizes of the operands, and the dtypes of the results.
    build
        Builder that receives the call.
    inputs
        Operands, with axes before the core axes where the definition batches.
    """
    results = _call(specialised(definition, op, node, _dtypes(inputs)), build, inputs)
    _share_core_axes(definition, build, inputs, results)
    return results


def _share_core_axes(
    definition: Definition, build: Builder, inputs: Sequence[ir.Value], results: Sequence[ir.Value]
) -> None:
    """Give axes of results of unknown size those of the operands with their letters."""
    pairs = [
        pair
        for core, x in zip(definition.inputs or (), inputs, strict=False)
        if core and x.shape is not None and len(core) == len(x.shape)  # A batch has axes before.
        for pair in zip(core, build.dims(x), strict=True)
    ]
    sizes = {letter: dim for letter, dim in reversed(pairs) if dim is not None}
    for core, value in zip(definition.outputs or (), results, strict=False):
        if value.shape is None and not sizes.keys().isdisjoint(core):
            value.shape = ir.Shape([sizes.get(letter) for letter in core])


def decompositions() -> dict[str, Callable[..., ir.Value]]:
    """Return functions that call a definition, by the ONNX operator that it defines."""

    def call(definition: Definition) -> Callable[..., ir.Value]:
        def decomposed(build: Builder, *inputs: ir.Value) -> ir.Value:
            dtypes = _dtypes(inputs)
            return _call(Specialised(definition, {}, dtypes, dtypes[:1]), build, inputs)[0]

        return decomposed

    return {
        operator: call(DEFINITIONS[op_type])
        for op_type, operator in OPERATORS.items()
        if op_type in DEFINITIONS
    }


def _call(case: Specialised, build: Builder, inputs: Sequence[ir.Value]) -> list[ir.Value]:
    scope = build.scope
    case = replace(case, widens=scope.widens, masks_draws=scope.masks_draws)
    if case.definition.is_elementwise:
        return _call_elementwise(case, build, inputs)
    return _call_function(replace(case, ranks=_ranks(build, inputs)), build, inputs)


def _call_elementwise(
    case: Specialised, build: Builder, inputs: Sequence[ir.Value]
) -> list[ir.Value]:
    """Call an elementwise definition: float16 in float32, one with a loop on equal shapes."""
    if "float16" in case.operand_dtypes:
        wide = [build.cast(x, "float32") for x in inputs]
        widened = replace(
            case, operand_dtypes=_dtypes(wide), dtypes=("float32",) * len(case.dtypes)
        )
        results = _call_elementwise(widened, build, wide)
        return [build.cast(x, dtype) for x, dtype in zip(results, case.dtypes, strict=True)]
    of_vectors = case.of_vectors()
    by_blocks = _is_called_by_blocks(of_vectors, build, inputs)
    if of_vectors.ranks is None and not by_blocks:
        return _call_function(case, build, inputs)
    whole = reduce(broadcast, map(build.dims, inputs))
    patterns = [(1,) * (len(whole) - len(dims)) + dims for dims in map(build.dims, inputs)]
    are_one = [tuple(size == 1 for size in pattern) for pattern in patterns]
    inputs = with_equal_batches(build, inputs, are_one, [0] * len(inputs))
    if by_blocks:
        results = _call_by_blocks(case, of_vectors, build, inputs)
    else:
        results = _call_function(replace(case, ranks=_ranks(build, inputs)), build, inputs)
    for value in results:
        value.shape = ir.Shape(whole)
    return results


def _is_called_by_blocks(
    of_vectors: Specialised, build: Builder, inputs: Sequence[ir.Value]
) -> bool:
    """Return whether a call goes through its operands in blocks.

    Calls within functions do not, nor the operators that a runtime lacks: blocks are for functions
    that take long. Portable files have no loops for speed alone.
    """
    if build.scope.is_portable or build.in_function or of_vectors.definition.op_type in OPERATORS:
        return False
    dims = [d for d in map(dims_of, inputs) if d is not None]
    if len(dims) < len(inputs) or not may_be_long(reduce(broadcast, dims)):
        return False
    return len(of_vectors.graph().apply_nodes) >= _FEWEST


def _call_by_blocks(
    case: Specialised, of_vectors: Specialised, build: Builder, inputs: Sequence[ir.Value]
) -> list[ir.Value]:
    """Call a function that goes through its operands, arrays of one shape, in blocks."""
    nodes = of_vectors.graph().apply_nodes
    has_whole_form = len(nodes) <= _MOST and not any(isinstance(n.op, Scan) for n in nodes)

    def body(inner: Builder, *arguments: ir.Value) -> list[ir.Value]:
        def function(block: Builder, *vectors: ir.Value) -> list[ir.Value]:
            return _call_function(of_vectors, block, vectors)

        return in_blocks(inner, function, arguments, has_whole_form=has_whole_form)

    return build.call(
        case.name,
        body,
        *inputs,
        variant=f"{case.variant}_in_blocks",
        key=(case.identity, "in blocks"),
        described=_described(case),
    )


def _described(case: Specialised) -> Described:
    expression = case.definition.expression
    meaning = Meaning(case.name, case.operand_dtypes[0], case.batch_rank or None, case.keywords)
    return Described(
        expression,
        is_standard=case.is_standard,
        dtypes=case.dtypes,
        meaning=meaning if case.is_standard else None,
    )


def _call_function(case: Specialised, build: Builder, inputs: Sequence[ir.Value]) -> list[ir.Value]:
    unfinished = build.scope.unfinished
    refuse_recursion(case, build)

    def body(inner: Builder, *arguments: ir.Value) -> list[ir.Value]:
        unfinished.add(case)
        try:
            return convert_inner(case.graph(), inner, arguments)
        except NestedProblems as nested:
            reason = f"in the definition of {case.name} at {case.definition.location}: "
            raise NestedProblems(
                [replace(p, reason=reason + p.reason) for p in nested.problems]
            ) from None
        finally:
            unfinished.discard(case)

    return build.call(
        case.name,
        body,
        *inputs,
        variant=case.variant,
        key=case.identity,
        shapes=None if case.ranks is None else [v.type.shape for v in case.operands()],
        described=replace(_described(case), is_definition=case.definition.is_elementwise),
    )


def _dtypes(values: Sequence[ir.Value]) -> tuple[str, ...]:
    return tuple(str(dtype_of(x).numpy()) for x in values)


def _ranks(build: Builder, values: Sequence[ir.Value]) -> tuple[int, ...]:
    return tuple(len(build.dims(x)) for x in values)


BLOCK = 2**15
"""Number of elements of a block, at least: 256 KiB of float64."""
LONGEST_WHOLE = 2 * BLOCK
"""Number of elements up to which an array is one block."""

Function = Callable[..., list[ir.Value]]
"""Receives a builder and vectors of one length, and returns vectors of that length."""


def may_be_long(dims: Dims) -> bool:
    """Return whether an array may have more elements than one block.

    Examples
    --------
    >>> may_be_long(("n", 3)), may_be_long((1000, 3)), may_be_long(())
    (True, False, False)
    """
    size = product_dim(dims)
    return not isinstance(size, int) or size > LONGEST_WHOLE


def in_blocks(
    build: Builder, function: Function, inputs: Sequence[ir.Value], *, has_whole_form: bool
) -> list[ir.Value]:
    """Apply a function of vectors to the elements of arrays, block by block.

    Each operator of a function reads and writes whole arrays, which takes two to three times as
    long where they leave the cache.

    Parameters
    ----------
    build
        Builder that receives the nodes.
    function
        Elementwise function of vectors.
    inputs
        Arrays of one shape.
    has_whole_form
        Whether the function is applied to short arrays outside the loop, which saves some
        microseconds of a call, and takes twice the time to create a session.
    """
    x, *_ = inputs
    vectors = [build.Reshape(v, build.ints([-1])) for v in inputs]

    def by_block(inner: Builder) -> list[ir.Value]:
        return _loop_over_blocks(inner, function, vectors)

    if has_whole_form:
        is_long = build.Greater(build.Size(x), LONGEST_WHOLE)
        results = build.cond(is_long, by_block, lambda inner: function(inner, *vectors))
    else:
        results = by_block(build)
    return [build.Reshape(y, build.Shape(x), allowzero=1) for y in results]


def _loop_over_blocks(
    build: Builder, function: Function, vectors: Sequence[ir.Value]
) -> list[ir.Value]:
    """Fill up the last block with the last element, and apply the function to each of them."""
    length = build.Shape(vectors[0])
    count = build.Max(build.Div(length, build.ints([BLOCK])), build.ints([1]))
    missing = build.Mod(build.Neg(length), count)
    padding = build.Concat(build.ints([0]), missing, axis=0)
    rows = build.Concat(count, build.ints([-1]), axis=0)
    blocks = [build.Reshape(build.Pad(v, padding, mode="edge"), rows) for v in vectors]

    def of_block(inner: Builder, *block: ir.Value) -> list[ir.Value]:
        # The rank of the results, which a Scan must know, is not inferred through all functions.
        return [inner.Reshape(y, build.ints([-1])) for y in function(inner, *block)]

    stacked = build.scan([], blocks, of_block)
    flat = [build.Reshape(y, build.ints([-1])) for y in stacked]
    return [build.Slice(y, build.ints([0]), length) for y in flat]
