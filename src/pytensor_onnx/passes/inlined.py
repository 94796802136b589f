"""What stands before and after a value once a runtime has put functions in place of their calls."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

import onnx_ir as ir

from pytensor_onnx.passes.rewriting import GraphLike


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


def _reached(value: ir.Value, edges: Mapping[ir.Value, list[ir.Value]]) -> list[ir.Value]:
    reached, waiting = {value: None}, [value]
    while waiting:
        new = [v for v in edges.get(waiting.pop(), ()) if v not in reached]
        reached.update(dict.fromkeys(new))
        waiting += new
    return list(reached)
