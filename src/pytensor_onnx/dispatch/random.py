"""Draws of random numbers, each a model-local function of the state and the number of draws."""

import onnx_ir as ir
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.type import tensor

from pytensor_onnx.builder import Builder
from pytensor_onnx.dispatch.basic import Lowered, convert_inner, onnx_funcify
from pytensor_onnx.functions.random.drawing import SAMPLERS
from pytensor_onnx.functions.random.ops import Draw, Threefry, state_variable
from pytensor_onnx.functions.random.samplers import sample
from pytensor_onnx.functions.random.threefry import threefry
from pytensor_onnx.rewriting.generators import GeneratorOf, StateOf


@onnx_funcify.register(Draw)
def lower_draw(op: Draw, node: Apply, onnx: Builder, state: ir.Value, n: ir.Value) -> Lowered:
    """Call the function that draws, which is defined once for each dtype."""
    arguments = [state_variable("state"), tensor("n", dtype="int64", shape=())]

    def body(inner: Builder, *values: ir.Value) -> list[ir.Value]:
        fgraph = FunctionGraph(arguments, list(sample(op, *arguments)), clone=False)
        return convert_inner(fgraph, inner, values)

    shapes = [variable.type.shape for variable in arguments]
    return onnx.call(
        type(op).__name__,
        body,
        state,
        n,
        variant=op.dtype,
        shapes=shapes,
        source=sample.dispatch(type(op)),
    )


@onnx_funcify.register(Threefry)
def lower_threefry(op: Threefry, node: Apply, onnx: Builder, *words: ir.Value) -> Lowered:
    """Call the cipher, a function of elementwise operators that serves every rank."""
    arguments = [tensor(dtype="uint32", shape=()) for _ in words]

    def body(inner: Builder, *values: ir.Value) -> list[ir.Value]:
        fgraph = FunctionGraph(arguments, threefry(*arguments), clone=False)
        return convert_inner(fgraph, inner, values)

    return onnx.call("Threefry2x32", body, *words, variant="", source=threefry)


@onnx_funcify.register(GeneratorOf)
@onnx_funcify.register(StateOf)
def lower_generator(op: GeneratorOf | StateOf, node: Apply, onnx: Builder, x: ir.Value) -> ir.Value:
    """Return the state: it is the generator."""
    return x


@onnx_funcify.register(RandomVariable)
def refuse_random_variable(
    op: RandomVariable, node: Apply, onnx: Builder, *inputs: ir.Value
) -> Lowered:
    """Raise for a distribution that no sampler is defined for, or for a batch that it draws not."""
    if type(op) in SAMPLERS:
        raise onnx.unsupported(
            f"the sampler of {op.name} draws no batches",
            "draw one after the other in a loop, or sort uniform numbers along an axis "
            "(`pt.argsort`) for a batch of permutations",
        )
    known = ", ".join(sorted(rv.name for rv in SAMPLERS))
    raise onnx.unsupported(
        f"no sampler is defined for {op.name}",
        f"draw from one of these distributions: {known}",
    )
