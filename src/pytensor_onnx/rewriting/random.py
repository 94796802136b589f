"""Draws from states, and noise as inputs."""

from collections.abc import Sequence

import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType, random_generator_type
from pytensor.tensor.shape import Reshape

from pytensor_onnx.encodings import encoding_of
from pytensor_onnx.encodings.registry import Tensors
from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.functions.random.drawing import draw
from pytensor_onnx.functions.random.streams import spawned
from pytensor_onnx.ops.random.draws import (
    Draw,
    OpenUniform,
    RandomBits,
    Sampler,
    Spawn,
    StandardUniform as Uniform,
    state_variable,
)

_ADVICE = "export it with the state of its generator (rng='state')"


def with_noise_inputs(outputs: Sequence[Variable]) -> tuple[list[Variable], list[Variable]]:
    """Return a graph without random generators, and the inputs that hold its noise.

    Parameters
    ----------
    outputs
        Outputs of a graph, which stays as it is.

    Returns
    -------
    outputs, noise
        The new outputs, and one input for each draw: ``<draw>_uniform`` for numbers between 0 and
        1, ``<draw>_normal`` for standard normal numbers, ``<draw>_bits`` for random bits.

    Raises
    ------
    PyTensorONNXError
        If a draw needs an unknown number of random numbers, or a loop draws.

    Examples
    --------
    >>> rng = pt.random.rng("rng")
    >>> _, x = rng.normal(10.0, 2.0, size=3)
    >>> [y], [noise] = with_noise_inputs([x])
    >>> noise
    normal_normal
    >>> y.eval({noise: [0.0, 1.0, -1.0]})
    array([10., 12.,  8.])
    """
    fgraph = FunctionGraph(outputs=clone_replace(list(outputs)), clone=False)
    _inline_functions(fgraph)
    noise: list[Variable] = []
    for node in fgraph.toposort():
        if isinstance(node.op, RandomVariable):
            fgraph.replace(node.outputs[1], _function_of_noise(node, noise), import_missing=True)
    results = list(fgraph.outputs)
    if any(isinstance(x.type, RandomType) for x in ancestors(results)):
        raise PyTensorONNXError(
            "a loop, or an output that is a generator, has no noise inputs: draw before the loop, "
            f"or {_ADVICE}"
        )
    return results, noise


def _inline_functions(fgraph: FunctionGraph) -> None:
    """Put the graphs of functions that draw, such as PyMC's distributions, in their places."""
    while True:
        drawing = [
            node
            for node in fgraph.apply_nodes
            if isinstance(node.op, OpFromGraph)
            and any(isinstance(x.type, RandomType) for x in node.inputs)
        ]
        if not drawing:
            return
        for node in drawing:
            inner = node.op.fgraph.unfreeze()
            given = dict(zip(inner.inputs, node.inputs, strict=True))
            results = clone_replace(inner.outputs, replace=given)
            fgraph.replace_all(list(zip(node.outputs, results, strict=True)), import_missing=True)


def _function_of_noise(node: Apply, noise: list[Variable]) -> Variable:
    """Return a random variable as a function of noise, which is added to the list."""
    drawn = draw(node, state_variable())
    if drawn is None:
        raise PyTensorONNXError(f"no sampler is defined for {node.op.name}")
    result = drawn[1]
    inner = list(toposort([result], blockers=list(node.inputs)))
    if any(isinstance(other.op, Sampler) for other in inner):
        raise PyTensorONNXError(
            f"{node.op.name} is drawn by rejection or inversion in a loop, which takes an unknown "
            f"number of random numbers, so that its noise cannot be an input: {_ADVICE}"
        )
    given = {}
    for other in inner:
        if isinstance(other.op, Draw):
            flat = other.outputs[1]
            reshaped = [n for n in inner if isinstance(n.op, Reshape) and n.inputs[0] is flat]
            target = reshaped[0].outputs[0] if reshaped else flat
            size = reshaped[0].inputs[1] if reshaped else pt.stack([other.inputs[1]])
            given[target] = _noise(node, other.op, target, size, noise)
    [replaced] = clone_replace([result], replace=given)
    kept: Variable = node.outputs[1].type.filter_variable(replaced, allow_convert=True)
    kept.name = node.outputs[1].name
    return kept


def _noise(
    node: Apply, op: Draw, target: Variable, size: Variable, noise: list[Variable]
) -> Variable:
    """Return an input of the type of a draw, whose shape is checked."""
    kinds = {OpenUniform: "uniform", Uniform: "uniform", RandomBits: "bits"}
    base = f"{node.outputs[1].name or node.op.name}_{kinds.get(type(op), 'normal')}"
    names = {x.name for x in noise}
    name = next(n for n in (base, *(f"{base}_{i}" for i in range(1, 10**6))) if n not in names)
    given = target.type(name=name)
    noise.append(given)
    if target.type.ndim == 0:
        return given
    message = f"{name} must have the shape of the draw"
    return CheckAndRaise(ValueError, message)(given, pt.all(pt.eq(given.shape, size)))


_GENERATORS = encoding_of(random_generator_type)
assert _GENERATORS is not None


@_GENERATORS.rewrites(RandomVariable)
def draw_from_state(
    op: RandomVariable, node: Apply, inputs: Sequence[Tensors]
) -> list[Tensors] | None:
    """Draw by the sampler of a distribution, or return None if it has no sampler."""
    drawn = draw(node, inputs[0][0])
    return None if drawn is None else [[result] for result in drawn]


@_GENERATORS.rewrites(Spawn)
def spawn_from_state(op: Spawn, node: Apply, inputs: Sequence[Tensors]) -> list[Tensors]:
    """Take the keys of spawned generators from blocks of the parent's stream."""
    return [[state] for state in spawned(inputs[0][0], op.count)]
