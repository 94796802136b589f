"""Replace the nodes of a session's model by regions that run in the library."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import onnx
import onnx.inliner
from onnx import NodeProto

from pytensor_onnx import native
from pytensor_onnx.errors import MissingEngineError, UncoveredError
from pytensor_onnx.graph.traversal import STANDARD_DOMAIN
from pytensor_onnx.kernels.graph_scope import Scope, bodies, captured
from pytensor_onnx.kernels.instructions import FUNCTIONS, partial_results
from pytensor_onnx.kernels.limits import FASTER_OUTSIDE, has_many_axes, is_large, is_slow_in_float32
from pytensor_onnx.kernels.tape import PARTIAL, Knowledge, Tape
from pytensor_onnx.kernels.written_layers import (
    of_any_size as convolutions_of_any_size,
    write_layers,
)
from pytensor_onnx.operators.dims import SHARED

DOMAIN = native.REGION_DOMAIN
AS_FUNCTIONS = ("Erf", "Sigmoid", "Softplus")
"""Operators of ONNX for which the library has kernels of functions."""
FLOATS = {onnx.TensorProto.DOUBLE: "float64", onnx.TensorProto.FLOAT: "float32"}
INTEGERS = (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
MOST_BYTES = 2**28
"""Size of the largest model that is searched for regions."""
LARGE_CONSTANT = 2**12
"""Bytes above which the data of a constant is not read: it is no size, and stands in no tape."""
FEWEST_NODES = 2
"""Nodes of the smallest region, unless it is the whole model, which needs no session then."""
OWN_KERNEL = "kernels of their own"
"""Reason of the functions whose kernels run outside of regions, for arrays above the limits."""


@dataclass(frozen=True)
class Region:
    """A region of a model.

    Attributes
    ----------
    name
        Name of the node that runs it.
    operators
        Operators of its nodes and of the bodies in them, in order.
    values
        Names of the values that the nodes compute.
    made_by
        Name and operator of the node of each instruction of the tape's first block.
    """

    name: str
    operators: tuple[str, ...]
    values: frozenset[str]
    made_by: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.name}: {len(self.operators)} nodes ({counted(self.operators)})"


@dataclass(frozen=True)
class Stayed:
    """A node that stays with ONNX Runtime, with the reason."""

    operator: str
    reason: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Fusion:
    """A model with regions.

    Attributes
    ----------
    model
        The serialized model, None where it has no region.
    regions
        The regions.
    stayed
        The nodes that are in no region.
    given
        Inputs of the model from whose values sizes follow.
    is_whole
        Whether one region is the whole model but for constants.
    """

    model: bytes | None
    regions: tuple[Region, ...] = ()
    stayed: tuple[Stayed, ...] = ()
    given: tuple[str, ...] = ()
    is_whole: bool = False

    def lines(self) -> list[str]:
        """Return a line for each region, and for each reason why ONNX Runtime runs nodes."""
        operators = defaultdict(list)
        for node in self.stayed:
            operators[node.reason].append(node.operator)
        stayed = [f"{counted(names)}: {reason}" for reason, names in operators.items()]
        return [*map(str, self.regions), *stayed]

    def places(self) -> dict[str, str]:
        """Return for each value the region that computes it, or why none does."""
        found = {name: x.reason for x in self.stayed for name in x.values}
        return found | {name: region.name for region in self.regions for name in region.values}


def counted(operators: Iterable[str]) -> str:
    """Return the operators with their numbers, the most frequent first."""
    return ", ".join(f"{count} {name}" for name, count in Counter(operators).most_common())


def fuse(source: bytes, *, every_size: bool = False) -> Fusion:
    """Find the regions of a model.

    Parameters
    ----------
    source
        A serialized model.
    every_size
        Whether regions have all nodes that the library covers, also nodes that ONNX Runtime runs
        faster, and, in models without loops too, nodes whose sizes follow from any integer input,
        and not only from shared variables.
    """
    if len(source) > MOST_BYTES and not every_size:
        return Fusion(None)
    # Whoever opens the result trusts its regions, so none may come from the source, wherever it is.
    if DOMAIN.encode() in source:
        return Fusion(None, stayed=(Stayed("Region", f"the model has the domain {DOMAIN}", ()),))
    model = onnx.ModelProto()
    model.ParseFromString(source)
    weights = _take_weights(model)
    model = _inlined(model)
    model = onnx.shape_inference.infer_shapes(model)
    if every_size:
        if write_layers(model.graph):
            model = onnx.shape_inference.infer_shapes(model)
        _name_functions(model.graph, None)
    # Numbers of steps decide the sizes of what loops stack.
    has_loop = not {"Loop", "Scan"}.isdisjoint(_operators(model.graph.node))
    is_any_integer = every_size or has_loop
    pass_ = _Pass(every_size, _integers(model.graph, shared_only=not is_any_integer))
    pass_.run(model.graph, None)
    if not pass_.regions:
        return Fusion(None, stayed=tuple(pass_.stayed))
    model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    for constant in model.graph.initializer:
        if constant.name in weights:
            constant.raw_data = weights[constant.name]
    given = tuple(sorted(pass_.knowledge.given))
    is_whole = whole_region(model.graph) is not None
    return Fusion(
        model.SerializeToString(), tuple(pass_.regions), tuple(pass_.stayed), given, is_whole
    )


def _name_functions(graph: onnx.GraphProto, outer: Scope | None) -> None:
    """Make operators of ONNX functions with kernels, which sessions leave to the runtime."""
    scope = Scope(graph, outer)
    for node in graph.node:
        dtype = FLOATS.get(scope.dtype(node.input[0])) if node.input else None
        if dtype and node.domain in ("", "ai.onnx") and node.op_type in AS_FUNCTIONS:
            node.op_type, node.domain = f"{node.op_type}_{dtype}", STANDARD_DOMAIN
        for body in bodies(node):
            _name_functions(body, scope)


def _integers(graph: onnx.GraphProto, shared_only: bool) -> list[str]:
    """Return the inputs that may decide sizes: integers of a vector at most.

    Shared ones, such as the lengths of a PyMC model's dims, hardly ever change; arguments may in
    every call, for which a plan would be made each time.
    """
    given = [
        x for x in graph.input if not shared_only or any(p.key == SHARED for p in x.metadata_props)
    ]
    types = {x.name: x.type.tensor_type for x in given}
    return [name for name, x in types.items() if x.elem_type in INTEGERS and len(x.shape.dim) <= 1]


def whole_region(graph: onnx.GraphProto) -> NodeProto | None:
    """Return the region that is the whole graph but for constants, None if there is none."""
    nodes = [node for node in graph.node if node.op_type != "Constant"]
    if [node.domain for node in nodes] != [DOMAIN]:
        return None
    [region] = nodes
    return region if {x.name for x in graph.output} == set(region.output) else None


def region_of_all(
    model: onnx.ModelProto, *, of_any_size: bool = False
) -> tuple[onnx.GraphProto, NodeProto]:
    """Return a graph of constants and one region that computes a model, for arrays of any size.

    Parameters
    ----------
    model
        The model.
    of_any_size
        Whether it may have convolutions that take long.

    Raises
    ------
    UncoveredError
        If the kernels do not cover the whole model; the message has the nodes and the reasons.
    MissingEngineError
        If this installation has no kernels.
    """
    if native.library() is None:
        raise MissingEngineError("this installation has no native library, which knows the kernels")
    try:
        with convolutions_of_any_size(of_any_size):
            fusion = fuse(model.SerializeToString(), every_size=True)
    except onnx.shape_inference.InferenceError as error:
        reason = " ".join(str(error).split())
        raise UncoveredError(
            f"a tape does not cover a model that is not valid: {reason}"
        ) from error
    graph = onnx.load_model_from_string(require_whole(fusion).model or b"").graph
    region = whole_region(graph)
    assert region is not None
    return graph, region


def require_whole(fusion: Fusion) -> Fusion:
    """Return a fusion whose one region is the whole model.

    Raises
    ------
    UncoveredError
        If it is not; the message has the nodes and the reasons.
    """
    if not fusion.is_whole:
        lines = [line for line in fusion.lines() if not line.startswith("region_")]
        uncovered = "; ".join(lines) or "outputs that no node computes"
        raise UncoveredError(f"a tape does not cover {uncovered}")
    return fusion


def _take_weights(model: onnx.ModelProto) -> dict[str, bytes]:
    """Take the data of large constants out of a model, which the steps of the pass would copy."""
    taken = {}
    for constant in model.graph.initializer:
        if constant.ByteSize() > LARGE_CONSTANT and constant.raw_data:
            taken[constant.name] = constant.raw_data
            constant.raw_data = b""
    return taken


def _inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with all functions written out but those with kernels."""
    if not model.functions:
        return model
    kept = [
        (f.domain, f.name)
        for f in model.functions
        if f.name in FUNCTIONS or (f.domain == STANDARD_DOMAIN and native.has_kernel(f.name))
    ]
    return onnx.inliner.inline_selected_functions(model, kept, exclude=True)


class _Pass:
    """Finds the regions of a graph and of the bodies in it."""

    def __init__(self, every_size: bool, candidates: Iterable[str]) -> None:
        self.every_size = every_size
        self.regions: list[Region] = []
        self.stayed: list[Stayed] = []
        self.knowledge = Knowledge(candidates)
        self._fewest = 1 if every_size else FEWEST_NODES
        self._scopes: list[Scope] = []

    def run(self, graph: onnx.GraphProto, outer: Scope | None) -> None:
        scope = Scope(graph, outer)
        self._scopes.append(scope)
        nodes = list(graph.node)
        if outer is None and sum(node.op_type != "Constant" for node in nodes) == 1:
            self._fewest = 1
        reasons = [self._reason(node, scope) for node in nodes]
        # A tape that needs the results of an If for sizes has its branches as they are.
        stay = [(i, node) for i, node in enumerate(nodes) if reasons[i] and node.op_type == "If"]
        for i, node in stay:
            nodes[i] = _copied(node)
        for node, reason in zip(nodes, reasons, strict=True):
            if reason:
                for body in bodies(node):
                    self.run(body, scope)
        levels: dict[int, list[NodeProto]] = defaultdict(list)
        for node, level in zip(nodes, _levels(nodes, [not x for x in reasons]), strict=True):
            levels[level].append(node)
        reason_of = {id(node): reason for node, reason in zip(nodes, reasons, strict=True)}
        # From the last level on: a region also reads the operands of sizes that it computes again.
        used = {x.name for x in graph.output}
        made: list[list[NodeProto]] = []
        for level, members in sorted(levels.items(), reverse=True):
            made.append(self._region(members, used, scope) if level % 2 else members)
            self.stayed += _stayed(made[-1], reason_of)
            used |= {name for node in made[-1] for name in _uses(node)}
        kept = [node for level in reversed(made) for node in level]
        copies = [_copied(node) for node in kept]
        del graph.node[:]
        graph.node.extend(copies)

    def _reason(self, node: NodeProto, scope: Scope) -> str:
        """Return why a node is in no region, an empty text if it may be in one."""
        if node.op_type == "Constant":
            return "a constant"
        if not self.every_size and _is_faster_outside(node):
            return "faster in the runtime"
        made = self.knowledge.instructions(node, scope)
        is_slow = not self.every_size and is_slow_in_float32(node, scope)
        is_large = not isinstance(made, str) and (is_slow or self._is_large(node, scope))
        if not isinstance(made, str):
            partial = PARTIAL if partial_results(node, scope) else ""
            made = self.knowledge.waits(node, scope) or partial or made
        if is_large or isinstance(made, str):
            is_function = node.domain == STANDARD_DOMAIN and native.has_kernel(node.op_type)
            return (
                OWN_KERNEL if is_function else "arrays above the limits" if is_large else str(made)
            )
        return ""

    def _is_large(self, node: NodeProto, scope: Scope) -> bool:
        if has_many_axes(node, scope) or (not self.every_size and is_large(node, scope)):
            return True
        for body in bodies(node):
            inner = Scope(body, scope)
            if any(self._is_large(x, inner) for x in body.node):
                return True
        return False

    def _region(
        self, members: Sequence[NodeProto], used: Set[str], scope: Scope
    ) -> list[NodeProto]:
        """Return a node that runs the used ones of some nodes, or these if they are few."""
        outputs = [name for node in members for name in node.output if name in used]
        wanted, needed = set(outputs), []
        for node in reversed(members):
            if not wanted.isdisjoint(node.output):
                needed.append(node)
                wanted |= set(_uses(node))
        needed.reverse()
        if len(needed) < self._fewest:
            return needed
        tape = Tape(scope, self.knowledge)
        text = tape.write(needed, outputs)
        name = f"region_{len(self.regions) + 1}"
        computed = frozenset(name for node in needed for name in node.output)
        made_by = tuple((node.name, node.op_type) for node in tape.made_by)
        self.regions.append(Region(name, tuple(_operators(needed)), computed, made_by))
        region = onnx.helper.make_node("Region", list(tape.inputs), outputs, name, domain=DOMAIN)
        region.attribute.append(onnx.helper.make_attribute("tape", text))
        return [region]


def _copied(node: NodeProto) -> NodeProto:
    return NodeProto.FromString(node.SerializeToString())


def _is_faster_outside(node: NodeProto) -> bool:
    """Return whether the runtime is faster for a node, or for one in its branches."""
    branches = bodies(node) if node.op_type == "If" else ()
    inner = (_is_faster_outside(x) for branch in branches for x in branch.node)
    return node.op_type in FASTER_OUTSIDE or any(inner)


def _stayed(nodes: Iterable[NodeProto], reason_of: Mapping[int, str]) -> Iterator[Stayed]:
    """Yield the nodes that are in no region, with the reasons of nodes by their identity."""
    for node in nodes:
        if node.domain != DOMAIN and node.op_type != "Constant":
            yield Stayed(node.op_type, reason_of[id(node)] or "alone", tuple(node.output))


def _operators(nodes: Iterable[NodeProto]) -> Iterator[str]:
    """Yield the operators of nodes, and of the bodies in them."""
    for node in nodes:
        if node.op_type != "Constant":
            yield node.op_type
        for body in bodies(node):
            yield from _operators(body.node)


def _uses(node: NodeProto) -> list[str]:
    """Return the values that a node and its bodies read."""
    return [*(name for name in node.input if name), *captured(node)]


def _levels(nodes: Sequence[NodeProto], is_covered: Sequence[bool]) -> list[int]:
    """Return a level for each node, odd for those covered, that falls along no edge.

    The covered nodes of a level can therefore become one node.
    """
    level_of: dict[str, int] = {}
    levels = []
    for node, covered in zip(nodes, is_covered, strict=True):
        base = max((level_of.get(name, 0) for name in _uses(node)), default=0)
        level = base if base % 2 == covered else base + 1
        levels.append(level)
        level_of |= dict.fromkeys(node.output, level)
    return levels
