"""Replace encoded values by their tensors, and imported operators by their expressions.

All later rewrites and lowerings see tensors only: a loop carries the tensors of a value like any
others, equal operations on them are merged, and PyTensor's own Python implementations compute the
same results as the model.
"""

from collections.abc import Callable, Iterable, Sequence

from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import optdb
from pytensor.compile.ops import DeepCopyOp, TypeCastingOp
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.conditional.op import IfElse, LazyIfElse
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph, Output
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.rewriting.basic import GraphRewriter, copy_stack_trace
from pytensor.printing import Print
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.op import Scan
from pytensor.tensor.basic import constant
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.type_other import NoneTypeT

from pytensor_onnx.compat.pytensor import vectorize_node
from pytensor_onnx.encodings import (
    Boundary,
    encoding_for,
    encoding_of,
    is_encoded,
    owner_of,
    tensor_types,
)
from pytensor_onnx.encodings.registry import part_names
from pytensor_onnx.named_dims import lower_named
from pytensor_onnx.ops.encoded import Decode, Encode
from pytensor_onnx.ops.networks.kept_operator import KeptOperator
from pytensor_onnx.rewriting.engine.walkers import ops_of
from pytensor_onnx.rewriting.loops.nested_loops import EncodedLoop
from pytensor_onnx.rewriting.query.registration import OPEN_OPERATORS
from pytensor_onnx.rules import rewrites_graphs


@rewrites_graphs(
    family="structure",
    purpose="conversion",
    identity="f(generator, complex or sparse value) = f'(tensors of it)",
    requires="values with an encoding",
    ensures="tensors only, between Encode and Decode",
)
def encode_values(fgraph: FunctionGraph) -> None:
    """Replace encoded values by tensors, in place.

    `Encode` converts encoded inputs, `Decode` tensors to encoded outputs. An Op without a rewrite
    for its encoded operands keeps them, behind a `Decode`.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import rewriting
    >>> generator = pt.random.rng()
    >>> _, x = generator.exponential(size=3)
    >>> fgraph = FunctionGraph([generator], [x], clone=False)
    >>> encode_values.rewrite(fgraph)
    >>> [str(node.op) for node in fgraph.toposort()][:2]
    ['Encode{generator}', 'OpenUniform{dtype=float64}']
    """
    if _holds_encoded(fgraph):
        lower_named(fgraph)
        _Rewrite(fgraph).run()
        if any(map(_is_inner_end, fgraph.apply_nodes)):
            _Rewrite(fgraph).run()


def tensor_graph(fgraph: FunctionGraph) -> FunctionGraph:
    """Return a graph of tensors for a graph with encoded values; other graphs are unchanged.

    Outputs that are None are left out.
    """
    # An input that nothing uses is none of the variables.
    is_plain = not any(map(is_encoded, fgraph.inputs)) and not _holds_encoded(fgraph)
    if is_plain and not any(map(_is_none, fgraph.outputs)):
        return fgraph
    graph = fgraph.clone(check_integrity=False)
    encode_values.rewrite(graph)
    return with_tensors(graph)


def with_tensors(fgraph: FunctionGraph) -> FunctionGraph:
    """Replace the encoded inputs and outputs of a rewritten graph by their tensors.

    Outputs that are None are left out.

    Parameters
    ----------
    fgraph
        Graph that `encode_values` has been applied to.
    """
    ends = (*fgraph.inputs, *fgraph.outputs)
    if not any(map(is_encoded, ends)) and not any(map(_is_none, fgraph.outputs)):
        return fgraph
    inputs: list[Variable] = []
    for variable in list(fgraph.inputs):
        inputs += _tensors_for_input(fgraph, variable) if is_encoded(variable) else [variable]
    outputs: list[Variable] = []
    for variable in fgraph.outputs:
        if _is_none(variable):
            continue
        made = variable.owner is not None and isinstance(variable.owner.op, Decode)
        outputs += variable.owner.inputs if made else [variable]
    return FunctionGraph(inputs, outputs, clone=False)


def _tensors_for_input(fgraph: FunctionGraph, variable: Variable) -> list[Variable]:
    types = zip(tensor_types(variable.type), part_names(variable.type, variable.name), strict=True)
    tensors: list[Variable] = [type_(name) for type_, name in types]
    for tensor in tensors:
        tensor.tag = variable.tag
        fgraph.add_input(tensor)
    for node, _ in list(fgraph.clients[variable]):
        if isinstance(node.op, Encode):
            for old, new in zip(node.outputs, tensors, strict=True):
                fgraph.replace(old, new)
    return tensors


def _is_none(variable: Variable) -> bool:
    return isinstance(variable.type, NoneTypeT)


def _holds_encoded(fgraph: FunctionGraph) -> bool:
    """Return whether a graph, or one of its inner graphs, has encoded values."""
    return any(map(is_encoded, fgraph.variables)) or any(
        owner_of(op) or any(map(_holds_encoded, _inner_graphs(op))) for op in ops_of(fgraph)
    )


def _is_inner_end(node: Apply) -> bool:
    """Return whether a rewrite to encoded values, as of complex sparse matrices, ends in a node."""
    return isinstance(node.op, Encode) and node.inputs[0].owner is not None


def _is_function(node: Apply) -> bool:
    # The functions that other backends make of random variables have a core Op too.
    is_batch = isinstance(node.op, Blockwise)
    op = node.op.core_op if is_batch else node.op
    if not isinstance(op, OpFromGraph):
        return False
    encoding = encoding_for(node)
    return encoding is None or encoding.rewrite_of(op) is None


def _inlined(node: Apply) -> Sequence[Variable]:
    """Return the results of a function, or of a batch of one, from the results of its Ops."""
    if isinstance(node.op, OpFromGraph):
        return inline_ofg_node(node)
    inner = node.op.core_op.fgraph
    operands = dict(zip(inner.inputs, node.inputs, strict=True))
    return vectorize_graph(list(inner.outputs), operands)


def _inner_graphs(op: Op) -> Iterable[FunctionGraph]:
    if isinstance(op, LazyIfElse):
        return [op.true_branch.fgraph, op.false_branch.fgraph]
    return [op.fgraph] if isinstance(op, HasInnerGraph) else []


class _Rewrite:
    """State of the rewrite of one graph."""

    def __init__(self, fgraph: FunctionGraph) -> None:
        self.fgraph = fgraph
        self.tensors: dict[Variable, Sequence[Variable]] = {}

    def run(self) -> None:
        self._inline_functions()
        for node in self.fgraph.toposort():
            if self._is_concerned(node):
                self._rewrite(node)
        ends = {node: None for output in self.fgraph.outputs for node in self._ends(output)}
        for node in ends:
            self._keep(node)

    def _is_concerned(self, node: Apply) -> bool:
        return encoding_for(node) is not None or any(map(_holds_encoded, _inner_graphs(node.op)))

    def _inline_functions(self) -> None:
        """Inline functions with encoded values, except functions with a rewrite."""
        while True:
            functions = [
                node
                for node in self.fgraph.toposort()
                if _is_function(node) and self._is_concerned(node)
            ]
            if not functions:
                return
            for node in reversed(functions):
                for old, new in zip(node.outputs, _inlined(node), strict=True):
                    self._replace(old, new)

    def _rewrite(self, node: Apply) -> None:
        if isinstance(node.op, Decode):
            return
        if isinstance(node.op, Encode):
            if _is_inner_end(node):
                tensors = self._tensors(node.inputs[0])
                for old, new in zip(node.outputs, tensors, strict=True):
                    self._replace(old, old.type.filter_variable(new))
            return
        inputs = [self._tensors(variable) for variable in node.inputs]
        results = _rewritten(node, inputs)
        if results is None:
            self._keep(node)
            return
        for old, new in zip(node.outputs, results, strict=True):
            if is_encoded(old):
                self.tensors[old] = new
            else:
                self._replace(old, old.type.filter_variable(new[0], allow_convert=True))

    def _ends(self, output: Variable) -> list[Apply]:
        """Return the nodes that mark a variable as an output of the graph."""
        return [node for node, _ in self.fgraph.clients[output] if isinstance(node.op, Output)]

    def _keep(self, node: Apply) -> None:
        """Keep the value of an output, and the operands of an unknown Op, for an error."""
        for i, variable in enumerate(list(node.inputs)):
            if is_encoded(variable):
                value = Decode(variable.type)(*self._tensors(variable))
                value.name = variable.name
                self.fgraph.change_node_input(node, i, value, import_missing=True)

    def _tensors(self, variable: Variable) -> Sequence[Variable]:
        encoding = encoding_of(variable.type)
        if encoding is None:
            return [variable]
        if variable not in self.tensors:
            node = variable.owner
            if node is not None and isinstance(node.op, Decode):
                tensors = list(node.inputs)
            elif isinstance(variable, Constant):
                arrays = encoding.encode(variable.type, variable.data)
                names = part_names(variable.type, variable.name)
                tensors = [constant(x, name) for x, name in zip(arrays, names, strict=True)]
            else:
                tensors = Encode(variable.type).make_node(variable).outputs
            self.tensors[variable] = tensors
        return self.tensors[variable]

    def _replace(self, old: Variable, new: Variable) -> None:
        copy_stack_trace(old, new)
        if new.name is None and new.owner is not None:
            new.name = old.name
        self.fgraph.replace(old, new, import_missing=True, reason="encode_values")


def _rewritten(node: Apply, inputs: list[Sequence[Variable]]) -> list[Sequence[Variable]] | None:
    """Return the tensors of each output of a node, None if unknown.

    Parameters
    ----------
    inputs
        The tensors of each input.
    """
    op, outputs = node.op, Boundary.of(node.outputs)
    if isinstance(op, TypeCastingOp | DeepCopyOp):
        return [inputs[0]]
    if isinstance(op, CheckAndRaise | Print):
        # All parts are checked, since a graph may use any of them.
        return [[op.make_node(part, *node.inputs[1:]).outputs[0] for part in inputs[0]]]
    if isinstance(op, Scan):
        return EncodedLoop(op, _graph_of_tensors).rebuilt(node, inputs)
    flat = [tensor for tensors in inputs for tensor in tensors]
    if isinstance(op, IfElse):
        choice = IfElse(outputs.width, as_view=op.as_view, name=op.name)
        return outputs.grouped(choice.make_node(*flat).outputs)
    if isinstance(op, LazyIfElse):
        branches = map(_function_of_tensors, (op.true_branch, op.false_branch))
        types = [part for type_ in outputs.types for part in tensor_types(type_)]
        return outputs.grouped(LazyIfElse(*branches, types).make_node(*flat).outputs)
    encoding = encoding_for(node)
    rewrite = None if encoding is None else encoding.rewrite_of(op)
    results = None if rewrite is None else rewrite(op, node, inputs)
    return None if results is None else list(results)


def _graph_of_tensors(op: Scan | OpFromGraph) -> FunctionGraph:
    """Return the inner graph of an Op with tensors in place of encoded values."""
    inner = op.fgraph.unfreeze()
    encode_values.rewrite(inner)
    return with_tensors(inner)


def _function_of_tensors(op: OpFromGraph) -> OpFromGraph:
    inner = _graph_of_tensors(op)
    return OpFromGraph(inner.inputs, inner.outputs, on_unused_input="ignore", name=op.name)


# Open operators of imported models: put their expressions in their place.
#
# All modes but ONNX compute the expressions, and files for runtimes of any maker have them.


class OpenOperators(GraphRewriter):
    """Replaces operators of imported models by their expressions, and those within them.

    Parameters
    ----------
    is_opened
        Which ones to replace; all unless given.
    """

    def __init__(self, is_opened: Callable[[KeptOperator], bool] = lambda op: True) -> None:
        self.is_opened = is_opened

    def apply(self, fgraph: FunctionGraph) -> None:
        """Rewrite a graph in place; results keep their names."""
        while opened := [node for node in fgraph.apply_nodes if self._opens(node)]:
            for node in opened:
                results = inline_ofg_node(node)
                for old, new in zip(node.outputs, results, strict=True):
                    if new.owner is not None and new.name is None:
                        new.name = old.name
                pairs = list(zip(node.outputs, results, strict=True))
                fgraph.replace_all(pairs, reason=OPEN_OPERATORS, import_missing=True)

    def _opens(self, node: Apply) -> bool:
        return isinstance(node.op, KeptOperator) and self.is_opened(node.op)


# Before a query of mode ONNX, which notes the name that it excludes as a tag.
optdb.register(
    OPEN_OPERATORS,
    OpenOperators(),
    "fast_run",
    "fast_compile",
    position=optdb.__position__["inline_ofg_expansion"],
)


def opened_for_portable(fgraph: FunctionGraph) -> FunctionGraph:
    """Return a graph without operators that only some runtimes have, itself if it has none.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> fgraph = FunctionGraph([x], [x + 1], clone=False)
    >>> opened_for_portable(fgraph) is fgraph
    True
    """
    opener = OpenOperators(lambda op: op.imported.is_of_few_runtimes)
    if not any(map(opener._opens, fgraph.apply_nodes)):
        return fgraph
    copy = fgraph.clone(check_integrity=False)
    opener.rewrite(copy)
    return copy


@vectorize_node.register(KeptOperator)
def _vectorized(op: KeptOperator, node: Apply, *inputs: Variable) -> Apply | Sequence[Variable]:
    """Apply the expression over further axes; the operator has none."""
    if all(new.type.ndim == old.type.ndim for new, old in zip(inputs, node.inputs, strict=True)):
        return op.make_node(*inputs)
    inner = op.fgraph.unfreeze()
    return vectorize_graph(list(inner.outputs), dict(zip(inner.inputs, inputs, strict=True)))
