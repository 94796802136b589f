"""Follow values through the calls, constant Ifs and Identity nodes that a runtime removes."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from pytensor_onnx.graph.traversal import bodies_of, nodes_of_model
from pytensor_onnx.passes.matching import is_constant, is_operator, producer_of

_KEEPS_INTEGERS = frozenset(
    {"Add", "Cast", "Expand", "Gather", "Mul", "ReduceProd", "Reshape", "Squeeze", "Unsqueeze"}
)
_TYPED_OPERAND = {"Where": 1}


class Inlined:
    """Sources and users of values in the graph that a runtime optimizes.

    The runtime inlines function calls and the selected branch of an If with a constant condition,
    and drops each Identity.

    Parameters
    ----------
    model
        Model whose calls stay unchanged.

    Attributes
    ----------
    folded
        Constants, sizes, and values that a runtime may fold from them. It may know more sizes than
        the model, for instance from session options.
    """

    def __init__(self, model: ir.Model) -> None:
        self._before: dict[ir.Value, list[ir.Value]] = defaultdict(list)
        self._after: dict[ir.Value, list[ir.Value]] = defaultdict(list)
        self._calls: set[ir.Node] = set()
        nodes = list(nodes_of_model(model))
        for node in nodes:
            function = model.functions.get(node.op_identifier()) if node.domain else None
            if function is not None:
                self._calls.add(node)
                # A call may omit the last arguments.
                self._join(zip(node.inputs, function.inputs, strict=False))
                self._join(zip(function.outputs, node.outputs, strict=False))
            elif is_operator(node, "If"):
                for branch in bodies_of(node):
                    self._join(zip(branch.outputs, node.outputs, strict=True))
            elif is_operator(node, "Identity"):
                self._join(zip(node.inputs, node.outputs, strict=True))
        self.folded = self._folded(nodes)
        self._whole: dict[ir.Value, bool] = {}
        self._folded_origins: dict[ir.Value, list[ir.Value]] = {}
        self._leaves: dict[ir.Value, frozenset[ir.Value]] = {}

    def _join(self, pairs: Iterator[tuple[ir.Value | None, ir.Value]]) -> None:
        for value, same in pairs:
            if value is not None:
                self._before[same].append(value)
                self._after[value].append(same)

    def _folded(self, nodes: Sequence[ir.Node]) -> set[ir.Value]:
        values = {v for node in nodes for v in (*node.inputs, *node.outputs) if v is not None}
        folded: set[ir.Value] = set()
        # The default of an input is no constant: a caller may pass another value.
        constants = set(filter(is_constant, values))
        waiting = [*constants, *(v for v in values if _is_size(v) and v not in constants)]
        while waiting:
            folded.update(new := _reached(waiting.pop(), self._after))
            for node in {user for v in new for user in v.consumers()} - self._calls:
                # A body may use any value of the graph around it.
                if all(v is None or v in folded for v in node.inputs) and not bodies_of(node):
                    waiting += [v for v in node.outputs if v not in folded]
        return folded

    def folds_with(self, value: ir.Value, other: ir.Value) -> bool:
        """Return whether a runtime that folds one value has folded the other as well.

        A value folds once its leaves are known: the other folds too if its leaves are a subset.
        """
        return other in self.folded and self._leaves_of(other) <= self._leaves_of(value)

    def _leaves_of(self, value: ir.Value) -> frozenset[ir.Value]:
        """Return the sizes, parameters and results of calls that make a folded value."""
        waiting = [value]
        while waiting:
            last = waiting[-1]
            operands = self._folded_operands(last)
            missing = [v for v in operands if v not in self._leaves]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            is_leaf = not operands and last.const_value is None
            known = [self._leaves[v] for v in operands]
            self._leaves[last] = frozenset([last]) if is_leaf else frozenset().union(*known)
        return self._leaves[value]

    def _folded_operands(self, value: ir.Value) -> list[ir.Value]:
        """Return the operands of the operator that makes a value, none for a leaf or a constant."""
        node = value.producer()
        if value.const_value is not None or node is None or node in self._calls:
            return []
        if _is_size(value) or bodies_of(node):
            return []
        return [v for v in node.inputs if v is not None]

    def origins(self, value: ir.Value) -> list[ir.Value]:
        """Return the possible sources of a value: itself, or values of callers or functions."""
        return [v for v in _reached(value, self._before) if v not in self._before]

    def folded_origins(self, value: ir.Value) -> list[ir.Value]:
        """Return the possible sources of a value that are folded.

        A parameter of a function has a source for each call, and few of them are folded.
        """
        if value not in self._folded_origins:
            found = [v for v in self.origins(value) if v in self.folded]
            self._folded_origins[value] = found
        return self._folded_origins[value]

    def users(self, value: ir.Value) -> list[ir.Node]:
        """Return the nodes other than calls that may use a value."""
        values = _reached(value, self._after)
        return [node for v in values for node in v.consumers() if node not in self._calls]

    def dtype(self, value: ir.Value) -> ir.DataType | None:
        """Return the dtype of a folded value; in functions, the dtype of its sources."""
        waiting, seen = [value], {value}
        while waiting:
            for origin in self.origins(waiting.pop()):
                dtype = _own_dtype(origin)
                if dtype is not None:
                    return dtype
                node = origin.producer()
                of_type = () if node is None else node.inputs[_TYPED_OPERAND.get(node.op_type, 0) :]
                new = [v for v in of_type[:1] if v is not None and v not in seen]
                seen.update(new)
                waiting += new
        return None

    def is_integral(self, value: ir.Value) -> bool:
        """Return whether a folded value consists of integers, or is the square root of an integer.

        Such a value is exactly 0 or 1, or far from both.
        """
        roots = [v.producer() for v in self.origins(value)]
        if len(roots) == 1 and roots[0] is not None and roots[0].op_type == "Sqrt":
            return all(v is not None and self._is_whole(v) for v in roots[0].inputs)
        return self._is_whole(value)

    def _is_whole(self, value: ir.Value) -> bool:
        if value not in self._whole:
            self._whole[value] = False
            self._whole[value] = all(self._makes_whole(v) for v in self.origins(value))
        return self._whole[value]

    def _makes_whole(self, value: ir.Value) -> bool:
        dtype, node = self.dtype(value), value.producer()
        if dtype is not None and dtype.is_integer():
            return True
        if node is None or node.domain or node.op_type not in _KEEPS_INTEGERS:
            return False
        return all(v is not None and self._is_whole(v) for v in node.inputs)


def _is_size(value: ir.Value) -> bool:
    return producer_of(value, "Shape", "Size") is not None


def _own_dtype(value: ir.Value) -> ir.DataType | None:
    """Return the dtype of a value, from the value or its node."""
    if value.dtype is not None:
        return value.dtype
    if value.const_value is not None:
        return value.const_value.dtype
    node = value.producer()
    if node is not None and node.op_type == "Cast":
        return ir.DataType(node.attributes["to"].as_int())
    return ir.DataType.INT64 if _is_size(value) else None


def _reached(value: ir.Value, edges: Mapping[ir.Value, list[ir.Value]]) -> list[ir.Value]:
    reached, waiting = {value: None}, [value]
    while waiting:
        new = [v for v in edges.get(waiting.pop(), ()) if v not in reached]
        reached.update(dict.fromkeys(new))
        waiting += new
    return list(reached)
