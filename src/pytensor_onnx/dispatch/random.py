"""Draws, whose length is an operand, and random variables that no distribution is defined for."""

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.tensor.random.op import RandomVariable

from pytensor_onnx.dispatch.registry.basic import Lowered, onnx_funcify
from pytensor_onnx.dispatch.registry.function import lower_defined
from pytensor_onnx.dispatch.registry.graphs import convert_inner
from pytensor_onnx.functions.random.drawing import sampler_of
from pytensor_onnx.functions.registry import DEFINITIONS
from pytensor_onnx.graph.builder import Builder, Described, Meaning
from pytensor_onnx.late_names import import_modules
from pytensor_onnx.operators.dims import sizes_in
from pytensor_onnx.ops.random.draws import Draw, StandardGraph
from pytensor_onnx.site_pages import page


@onnx_funcify.register(RandomVariable)
def refuse_random_variable(
    op: RandomVariable, node: Apply, build: Builder, *inputs: ir.Value
) -> Lowered:
    """Raise for a distribution without a sampler, or whose sampler takes no batch of parameters."""
    if sampler_of(op) is not None:
        raise build.unsupported(
            f"the sampler of {op.name} draws no batches",
            "draw one after the other in a loop",
        )
    import_modules("pytensor_onnx.functions.random")
    known = ", ".join(sorted(rv.name for rv in DEFINITIONS if issubclass(rv, RandomVariable)))
    raise build.unsupported(
        f"no sampler is defined for {op.name}",
        "register a sampler in PyTensor expressions with "
        f"@pytensor_onnx.define({type(op).__name__}), as {page('how-to/add-an-op')} shows, "
        "write a pymc.CustomDist with dist= in place of random=, "
        f"or draw from one of these distributions: {known}",
    )


@onnx_funcify.register(StandardGraph)
def lower_standard_graph(
    op: StandardGraph, node: Apply, build: Builder, *inputs: ir.Value
) -> Lowered:
    """Call the standard function of a name, whose body is the inner graph."""
    is_standard = not str(op.name).endswith("_narrow")

    def body(inner: Builder, *arguments: ir.Value) -> list[ir.Value]:
        return convert_inner(op.fgraph, inner, arguments)

    results = build.call(
        str(op.name),
        body,
        *inputs,
        variant="",
        shapes=[variable.type.shape for variable in op.fgraph.inputs],
        described=Described(
            type(op),
            parameters=op.parameters,
            is_standard=is_standard,
            dtypes=[variable.type.dtype for variable in node.outputs],
            meaning=Meaning(str(op.name)) if is_standard else None,
        ),
    )
    for value, variable in zip(results, node.outputs, strict=True):
        value.shape = ir.Shape(variable.type.shape)
    return list(results)


@onnx_funcify.register(Draw)
def lower_draw(op: Draw, node: Apply, build: Builder, state: ir.Value, n: ir.Value) -> Lowered:
    """Call the function that draws a vector, and give it the length that the operand has."""
    after, numbers = lower_defined(op, node, build, state, n)
    after.shape = ir.Shape([3])
    numbers.shape = ir.Shape(sizes_in(n) or [None])
    return [after, numbers]
