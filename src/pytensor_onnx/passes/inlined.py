"""What stands before and after a value once a runtime has put functions in place of their calls."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

import onnx_ir as ir

from pytensor_onnx.builder import Builder
from pytensor_onnx.passes.rewriting import Form, GraphLike, replace_node
from pytensor_onnx.scope import ModelScope, names_in


class Inlined:
    """Follows values through the calls of a model's functions, whichever the caller is.

    Parameters
    ----------
    model
        Model whose calls do not change in the meantime.

    Attributes
    ----------
    owners
        The graph and the functions of the model.
    folded
        Constants, and what a runtime may compute of them before it runs.
    """

    def __init__(self, model: ir.Model) -> None:
        self._before: dict[ir.Value, list[ir.Value]] = defaultdict(list)
        self._after: dict[ir.Value, list[ir.Value]] = defaultdict(list)
        self._calls: set[ir.Node] = set()
        self.owners: list[GraphLike] = [model.graph, *model.functions.values()]
        for owner in self.owners:
            for node in owner.all_nodes():
                function = model.functions.get(node.op_identifier())
                if function is not None:
                    self._calls.add(node)
                    # A call may leave out the last arguments.
                    self._join(zip(node.inputs, function.inputs, strict=False))
                    self._join(zip(function.outputs, node.outputs, strict=False))
        self.folded = self._folded()

    def _join(self, pairs: Iterator[tuple[ir.Value | None, ir.Value]]) -> None:
        for value, same in pairs:
            if value is not None:
                self._before[same].append(value)
                self._after[value].append(same)

    def _folded(self) -> set[ir.Value]:
        nodes = [node for owner in self.owners for node in owner.all_nodes()]
        values = {v for node in nodes for v in (*node.inputs, *node.outputs) if v is not None}
        folded: set[ir.Value] = set()
        waiting = [v for v in values if v.const_value is not None]
        while waiting:
            folded.update(new := _reached(waiting.pop(), self._after))
            for node in {user for v in new for user in v.consumers()} - self._calls:
                if all(v is None or v in folded for v in node.inputs):
                    waiting += [v for v in node.outputs if v not in folded]
        return folded

    def origins(self, value: ir.Value) -> list[ir.Value]:
        """Return the values that a value may be: itself, or what callers or functions make it."""
        return [v for v in _reached(value, self._before) if v not in self._before]

    def users(self, value: ir.Value) -> list[ir.Node]:
        """Return the nodes other than calls that may read a value."""
        values = _reached(value, self._after)
        return [node for v in values for node in v.consumers() if node not in self._calls]

    def replace(self, scope: ModelScope, form_of: Callable[[ir.Node], Form | None]) -> int:
        """Put other nodes in the place of some, in the graph and in functions.

        Parameters
        ----------
        scope
            Names and constants of the model.
        form_of
            Returns what takes the place of a node, None for those that stay.

        Returns
        -------
        int
            How many nodes were replaced.
        """
        count = 0
        for owner in self.owners:
            in_function = isinstance(owner, ir.Function)
            names = names_in(owner) if isinstance(owner, ir.Function) else scope.names
            forms = [(node, form_of(node)) for node in owner.all_nodes()]
            for node, form in forms:
                if form is not None and node.graph is not None:
                    onnx = Builder(scope, in_function=in_function)
                    onnx.provenance = dict(node.metadata_props)
                    made = form(onnx, node)
                    results = [made] if isinstance(made, ir.Value) else made
                    replace_node(node.graph, node, onnx, results, names)
                    count += 1
        return count


def _reached(value: ir.Value, edges: Mapping[ir.Value, list[ir.Value]]) -> list[ir.Value]:
    reached, waiting = {value: None}, [value]
    while waiting:
        new = [v for v in edges.get(waiting.pop(), ()) if v not in reached]
        reached.update(dict.fromkeys(new))
        waiting += new
    return list(reached)
