"""Random generators become tensors: in a graph for ONNX, a generator is its state.

Everything after this is about tensors alone: a loop carries a state as any other value, equal draws
from one state are one draw, and PyTensor's own Python implementations draw what the model does.
"""

from collections.abc import Sequence
from typing import Any

from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import optdb
from pytensor.compile.ops import DeepCopyOp, TypeCastingOp
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.conditional.op import IfElse
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import copy_stack_trace, graph_rewriter
from pytensor.scan.op import Scan
from pytensor.tensor.basic import constant
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType, random_generator_type

from pytensor_onnx.functions.random import distributions  # noqa: F401  (registers them)
from pytensor_onnx.functions.random.drawing import draw
from pytensor_onnx.functions.random.ops import state_variable
from pytensor_onnx.named_dims import lower_named
from pytensor_onnx.random import generator_of, has_generators, is_generator, state_of
from pytensor_onnx.rewriting.inner_graphs import loop_like


class StateOf(Op):
    """The state of a generator, a vector of four uint32."""

    __props__ = ()

    def make_node(self, generator: Variable) -> Apply:
        """Return the node for a variable of a random type."""
        return Apply(self, [generator], [state_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Read the state."""
        outputs[0][0] = state_of(inputs[0])


class GeneratorOf(Op):
    """The generator that stands for a state.

    Parameters
    ----------
    type_
        Type of the generator: that of PyTensor's tensors or of its named ones.
    """

    __props__ = ("type_",)

    def __init__(self, type_: RandomType = random_generator_type) -> None:
        self.type_ = type_

    def make_node(self, state: Variable) -> Apply:
        """Return the node for a vector of four uint32."""
        return Apply(self, [state], [self.type_()])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Any) -> None:
        """Make the generator."""
        outputs[0][0] = generator_of(inputs[0])


@graph_rewriter
def draw_from_states(fgraph: FunctionGraph) -> None:
    """Let a graph draw from the states of its generators, in place.

    `StateOf` stands after generators that are inputs, `GeneratorOf` before those that are outputs.
    A distribution that cannot be drawn keeps its Op.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> generator = pt.random.rng()
    >>> _, x = generator.exponential(size=3)
    >>> fgraph = FunctionGraph([generator], [x], clone=False)
    >>> draw_from_states.rewrite(fgraph)
    >>> [str(node.op) for node in fgraph.toposort()][:2]
    ['StateOf', 'OpenUniform{dtype=float64}']
    """
    if any(map(is_generator, fgraph.variables)):
        lower_named(fgraph)
        _Rewrite(fgraph).run()


class _Rewrite:
    """The rewrite of one graph."""

    def __init__(self, fgraph: FunctionGraph) -> None:
        self.fgraph = fgraph
        self.states: dict[Variable, Variable] = {}

    def run(self) -> None:
        self._open_functions()
        for node in self.fgraph.toposort():
            if any(map(is_generator, [*node.inputs, *node.outputs])):
                self._rewrite(node)
        for output in list(self.fgraph.outputs):
            if is_generator(output):
                self._replace(output, GeneratorOf(output.type)(self._state(output)))

    def _open_functions(self) -> None:
        """Replace what takes or returns a generator by the graph within it."""
        while True:
            closed = [
                node
                for node in self.fgraph.toposort()
                if isinstance(node.op, OpFromGraph)
                and any(map(is_generator, [*node.inputs, *node.outputs]))
            ]
            if not closed:
                return
            for node in reversed(closed):
                for old, new in zip(node.outputs, inline_ofg_node(node), strict=True):
                    self._replace(old, new)

    def _rewrite(self, node: Apply) -> None:
        op = node.op
        if isinstance(op, StateOf | GeneratorOf):
            return
        if isinstance(op, TypeCastingOp | DeepCopyOp):
            self.states[node.outputs[0]] = self._state(node.inputs[0])
            return
        if isinstance(op, RandomVariable):
            drawn = draw(node, self._state(node.inputs[0]))
            results = None if drawn is None else list(drawn)
        elif isinstance(op, Scan):
            results = _scan_of_states(op, self._with_states(node.inputs))
        elif isinstance(op, IfElse):
            results = op.make_node(*self._with_states(node.inputs)).outputs
        else:
            results = None
        if results is None:
            self._keep(node)
            return
        for old, new in zip(node.outputs, results, strict=True):
            if is_generator(old):
                self.states[old] = new
            else:
                self._replace(old, old.type.filter_variable(new, allow_convert=True))

    def _keep(self, node: Apply) -> None:
        """Let an unknown Op have its generators, for an error that names it."""
        for i, variable in enumerate(list(node.inputs)):
            if is_generator(variable):
                generator = GeneratorOf(variable.type)(self._state(variable))
                self.fgraph.change_node_input(node, i, generator, import_missing=True)

    def _with_states(self, variables: Sequence[Variable]) -> list[Variable]:
        return [self._state(v) if is_generator(v) else v for v in variables]

    def _state(self, generator: Variable) -> Variable:
        if generator not in self.states:
            node = generator.owner
            if node is not None and isinstance(node.op, GeneratorOf):
                state: Variable = node.inputs[0]
            elif isinstance(generator, Constant):
                state = constant(state_of(generator.data))
            else:
                state = StateOf()(generator)
            self.states[generator] = state
        return self.states[generator]

    def _replace(self, old: Variable, new: Variable) -> None:
        copy_stack_trace(old, new)
        if new.name is None and new.owner is not None:
            new.name = old.name
        self.fgraph.replace(old, new, import_missing=True, reason="draw_from_states")


def _scan_of_states(op: Scan, outer: list[Variable]) -> list[Variable]:
    """Return the outputs of a loop whose generators are states."""
    inner = op.fgraph.unfreeze()
    draw_from_states.rewrite(inner)
    inner = with_states(inner)
    outputs: list[Variable] = loop_like(op, inner.inputs, inner.outputs).make_node(*outer).outputs
    return outputs


def with_states(fgraph: FunctionGraph) -> FunctionGraph:
    """Return a graph that draws from states with the states for its inputs and outputs.

    Parameters
    ----------
    fgraph
        Graph that `draw_from_states` has been applied to.
    """
    if not has_generators(fgraph):
        return fgraph
    inputs = []
    for variable in list(fgraph.inputs):
        if not is_generator(variable):
            inputs.append(variable)
            continue
        state = state_variable(variable.name)
        state.tag = variable.tag
        fgraph.add_input(state)
        for node, _ in list(fgraph.clients[variable]):
            if isinstance(node.op, StateOf):
                fgraph.replace(node.outputs[0], state)
        inputs.append(state)
    outputs = []
    for variable in fgraph.outputs:
        made = is_generator(variable) and variable.owner is not None
        is_made = made and isinstance(variable.owner.op, GeneratorOf)
        outputs.append(variable.owner.inputs[0] if is_made else variable)
    return FunctionGraph(inputs, outputs, clone=False)


# Before the first rewrite but the one that lets names survive.
optdb.register("onnx_draw_from_states", draw_from_states, "onnx", position=-0.029)
