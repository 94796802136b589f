"""Replace the nodes of a session's model by regions that run in the library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx
import onnx.inliner
from onnx import NodeProto

from pytensor_onnx import native
from pytensor_onnx.kernels.graph_scope import Scope, bodies, captured
from pytensor_onnx.kernels.instructions import FUNCTIONS
from pytensor_onnx.kernels.limits import is_large
from pytensor_onnx.kernels.tape import Knowledge, Tape

DOMAIN = native.REGION_DOMAIN
MOST_BYTES = 2**25
"""Size of the largest model that is searched for regions."""
FEWEST_NODES = 2
"""Nodes of the smallest region."""
OF_MATRICES = ("Cholesky", "SolveTriangular")
"""Beginnings of the names of functions that stay calls, as they have kernels of their own."""


@dataclass(frozen=True)
class Region:
    """A region of a model.

    Attributes
    ----------
    nodes
        Operators of its nodes, in order.
    """

    nodes: tuple[str, ...]


def with_regions(source: bytes) -> bytes | None:
    """Return a model with regions, None where there is none.

    Parameters
    ----------
    source
        A serialized model.
    """
    if len(source) > MOST_BYTES:
        return None
    model = onnx.ModelProto()
    model.ParseFromString(source)
    model = _inlined(model)
    model = onnx.shape_inference.infer_shapes(model)
    pass_ = _Pass()
    pass_.run(model.graph, None)
    if not pass_.regions:
        return None
    model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    return model.SerializeToString()


def _inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with all functions written out but those with kernels."""
    if not model.functions:
        return model
    kept = [
        (f.domain, f.name)
        for f in model.functions
        if f.name in FUNCTIONS or f.name.startswith(OF_MATRICES)
    ]
    return onnx.inliner.inline_selected_functions(model, kept, exclude=True)


class _Pass:
    """Finds the regions of a graph and of the bodies in it."""

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self._knowledge = Knowledge()
        self._scopes: list[Scope] = []

    def run(self, graph: onnx.GraphProto, outer: Scope | None) -> None:
        scope = Scope(graph, outer)
        self._scopes.append(scope)
        nodes = list(graph.node)
        is_covered = [self._is_covered(node, scope) for node in nodes]
        for node, covered in zip(nodes, is_covered, strict=True):
            if not covered:
                for body in bodies(node):
                    self.run(body, scope)
        uses = [[*(x for x in node.input if x), *captured(node)] for node in nodes]
        levels = _levels(nodes, uses, is_covered)
        made: list[tuple[int, int, NodeProto]] = []
        for level in sorted(set(levels)):
            members = [i for i, x in enumerate(levels) if x == level]
            region = None
            if level % 2 and len(members) >= FEWEST_NODES:
                region = self._region(members, nodes, uses, scope)
            if region is not None:
                made.append((level, members[0], region))
            else:
                made += [(level, i, nodes[i]) for i in members]
        made.sort(key=lambda x: x[:2])
        kept = [node for *_, node in made]
        copies = [NodeProto.FromString(node.SerializeToString()) for node in kept]
        del graph.node[:]
        graph.node.extend(copies)

    def _is_covered(self, node: NodeProto, scope: Scope) -> bool:
        if node.op_type == "Constant":
            return False
        made = self._knowledge.instructions(node, scope)
        return not isinstance(made, str) and not self._is_large(node, scope)

    def _is_large(self, node: NodeProto, scope: Scope) -> bool:
        if is_large(node, scope):
            return True
        for body in bodies(node):
            inner = Scope(body, scope)
            if any(self._is_large(x, inner) for x in body.node):
                return True
        return False

    def _region(
        self, members: Sequence[int], nodes: Sequence[NodeProto], uses: Sequence, scope: Scope
    ) -> NodeProto | None:
        """Return the node that runs some nodes, None if nothing uses their results."""
        inside = set(members)
        results = {name for i in members for name in nodes[i].output}
        used = {name for i, names in enumerate(uses) if i not in inside for name in names}
        used |= {x.name for x in scope.graph.output}
        outputs = [name for i in members for name in nodes[i].output if name in used]
        wanted, needed = set(outputs), []
        for i in reversed(members):
            if not wanted.isdisjoint(nodes[i].output):
                needed.append(nodes[i])
                wanted |= set(uses[i]) & results
        needed.reverse()
        if not needed:
            return None
        tape = Tape(scope, self._knowledge)
        text = tape.write(needed, outputs)
        self.regions.append(Region(tuple(node.op_type for node in needed)))
        region = onnx.helper.make_node(
            "Region", list(tape.inputs), outputs, f"region_{len(self.regions)}", domain=DOMAIN
        )
        region.attribute.append(onnx.helper.make_attribute("tape", text))
        return region


def _levels(
    nodes: Sequence[NodeProto], uses: Sequence[Sequence[str]], is_covered: Sequence[bool]
) -> list[int]:
    """Return a level for each node, odd for those covered, that falls along no edge.

    The covered nodes of a level can therefore become one node.
    """
    level_of: dict[str, int] = {}
    levels = []
    for node, names, covered in zip(nodes, uses, is_covered, strict=True):
        base = max((level_of.get(name, 0) for name in names), default=0)
        level = base if base % 2 == covered else base + 1
        levels.append(level)
        level_of |= dict.fromkeys(node.output, level)
    return levels
