"""Write nodes as a tape, which the library runs."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import numpy as np
import onnx

from pytensor_onnx.kernels.graph_scope import Scope, bodies, captured, operator_numbers
from pytensor_onnx.kernels.instructions import (
    DTYPES,
    PLACES,
    Instruction,
    NotCoveredError,
    Operand,
    instructions_of,
    partial_results,
)

MAGIC = 0x70746B32
MOST_EMBEDDED = 64
"""Elements of the largest constant that stands in the tape; larger ones are inputs."""
_BODY_AT = {"If": 0, "Loop": 1, "Scan": 2}
"""Position of the first body among the attributes of an instruction."""

PARTIAL = "the length of a result of a Loop depends on values"

Key = tuple[int, str]


def with_digest(words: bytes) -> bytes:
    """Return a tape of its words: a mark, the digest by which the reader sees damage, the words."""
    return np.array([MAGIC, zlib.crc32(words)], "int64").tobytes() + words


class Knowledge:
    """Which values follow from the sizes of inputs, and which nodes are covered.

    Parameters
    ----------
    candidates
        Names of inputs of the model whose values may be known when a plan is made.

    Attributes
    ----------
    given
        The candidates from which sizes follow.
    """

    def __init__(self, candidates: Iterable[str] = ()) -> None:
        self.candidates = frozenset(candidates)
        self.given: set[str] = set()
        self._known: dict[Key, bool] = {}
        self._instructions: dict[int, list[Instruction] | str] = {}
        self._scopes: dict[int, Scope] = {}
        self._kept: list[object] = []

    def instructions(self, node: onnx.NodeProto, scope: Scope) -> list[Instruction] | str:
        """Return the instructions of a node, or the reason why it is not covered."""
        if id(node) not in self._instructions:
            self._kept.append(node)
            try:
                self._instructions[id(node)] = self._checked(node, scope)
            except NotCoveredError as error:
                self._instructions[id(node)] = str(error)
        return self._instructions[id(node)]

    def _checked(self, node: onnx.NodeProto, scope: Scope) -> list[Instruction]:
        made = instructions_of(node, scope)
        for name in node.input:
            if name and scope.dtype(name) not in DTYPES:
                raise NotCoveredError(f"{node.op_type} has an operand of another type")
        for body in bodies(node):
            self._check_body(node, body, scope)
        return made

    def _check_body(self, owner: onnx.NodeProto, body: onnx.GraphProto, scope: Scope) -> None:
        inner = self._inner(body, scope)
        waiting: dict[str, str] = {}
        partial: list[str] = []
        for node in body.node:
            made = self.instructions(node, inner) if node.op_type != "Constant" else []
            if isinstance(made, str):
                raise NotCoveredError(f"{made} in a body")
            partial += partial_results(node, inner)
            used = [*node.input, *captured(node)]
            reason = self.waits(node, inner) or next((waiting[x] for x in used if x in waiting), "")
            if reason or not set(partial).isdisjoint(used):
                waiting |= dict.fromkeys(node.output, reason or PARTIAL)
        for i, result in enumerate(body.output):
            if inner.dtype(result.name) not in DTYPES:
                raise NotCoveredError("a result of a body has another type")
            reason = PARTIAL if result.name in partial else waiting.get(result.name, "")
            if reason and (result.name in partial or i >= _sized_outputs(owner)):
                raise NotCoveredError(f"{reason} in a body")

    def waits(self, node: onnx.NodeProto, scope: Scope) -> str:
        """Return why the sizes of a covered node are known in the course of a run only."""
        made = self.instructions(node, scope)
        for instruction in made if not isinstance(made, str) else ():
            for i in instruction.sizes:
                operand = instruction.inputs[i] if i < len(instruction.inputs) else None
                if not isinstance(operand, str):
                    continue
                # A number between the instructions of a node follows from its other operands.
                is_own = scope.owner(operand) is None
                sources = node.input[1:] if is_own else [operand]
                if not all(self.is_known(x, scope) for x in sources if x):
                    return f"a size of {node.op_type} depends on values"
        return ""

    def _inner(self, body: onnx.GraphProto, scope: Scope) -> Scope:
        if id(body) not in self._scopes:
            self._kept.append(body)
            self._scopes[id(body)] = Scope(body, scope)
        return self._scopes[id(body)]

    def is_known(self, name: str, scope: Scope) -> bool:
        """Return whether a value is a constant or follows from sizes alone."""
        key = (id(scope.owner(name)), name)
        if key not in self._known:
            self._known[key] = self._follows_from_sizes(name, scope)
        return self._known[key]

    def _follows_from_sizes(self, name: str, scope: Scope) -> bool:
        if scope.constant_size(name) is not None:
            return True
        owner = scope.owner(name)
        if owner is scope.root and name in owner.inputs and name in self.candidates:
            self.given.add(name)
            return True
        found = scope.producer(name)
        if found is None:
            return False
        node, owner = found
        made = self.instructions(node, owner)
        if isinstance(made, str):
            return False
        if node.op_type == "If":
            results = [(x.name, self._inner(b, owner)) for b in bodies(node) for x in b.output]
            return self.is_known(node.input[0], owner) and all(
                self.is_known(name, inner) for name, inner in results
            )
        if any(x.bodies for x in made):
            return False
        if node.op_type in ("Shape", "Size"):
            return True
        return all(self.is_known(x, owner) for x in node.input if x)


def _sized_outputs(node: onnx.NodeProto) -> int:
    """Return how many first outputs of a node's body have sizes that are known before a step."""
    if node.op_type == "Loop":
        return len(node.input) - 1
    arrays = [x.i for x in node.attribute if x.name == "num_scan_inputs"]
    return len(node.input) - arrays[0] if arrays else 0


class Tape:
    """A tape in the making.

    Attributes
    ----------
    inputs
        Names of the values that the region reads.
    made_by
        The node of each instruction of the region itself, bodies of loops and branches left out.
    """

    def __init__(self, scope: Scope, knowledge: Knowledge) -> None:
        self.scope = scope
        self.knowledge = knowledge
        self.inputs: dict[str, int] = {}
        self.made_by: list[onnx.NodeProto] = []
        self._ids: dict[Key, int] = {}
        self._dtypes: list[int] = []
        self._constants: list[np.ndarray] = []
        self._constant_count = 0
        self._blocks: list[_Block] = [_Block()]
        self._scopes: list[Scope] = [scope]

    def write(self, nodes: Iterable[onnx.NodeProto], outputs: Sequence[str]) -> bytes:
        """Return the tape of nodes in order."""
        main = self._blocks[0]
        for node in nodes:
            self._node(node, self.scope, main)
        results = [self._operand(name, self.scope, main) for name in outputs]
        head = [len(self._dtypes), *self._dtypes, self._constant_count]
        main.inputs = list(self.inputs.values())
        main.outputs = results
        known = [i for i, name in enumerate(self.inputs) if name in self.knowledge.given]
        rest = [
            len(known),
            *known,
            len(self._blocks),
            *(word for block in self._blocks for word in block.words()),
        ]
        parts = [np.array(head), *self._constants, np.array(rest)]
        return with_digest(np.concatenate(parts, dtype="int64").tobytes())

    def _new(self, dtype: int) -> int:
        self._dtypes.append(dtype)
        return len(self._dtypes) - 1

    def _constant(self, value: np.ndarray) -> int:
        made = self._new(onnx.helper.np_dtype_to_tensor_dtype(value.dtype))
        data = value.tobytes()
        data += bytes(-len(data) % 8)
        self._constants += [
            np.array([made, value.ndim, *value.shape]),
            np.frombuffer(data, "int64"),
        ]
        self._constant_count += 1
        return made

    def _operand(self, operand: Operand, scope: Scope, block: _Block) -> int:
        if operand is None or (isinstance(operand, str) and not operand):
            return -1
        made = self._value(operand, scope) if isinstance(operand, str) else self._constant(operand)
        block.uses.add(made)
        return made

    def _value(self, name: str, scope: Scope) -> int:
        owner = scope.owner(name) or scope
        key = (id(owner), name)
        if key not in self._ids:
            self._ids[key] = self._outside(name, owner)
        return self._ids[key]

    def _outside(self, name: str, owner: Scope) -> int:
        """Return a value that no node of the tape has computed yet."""
        size = owner.constant_size(name)
        is_inside = owner is not self.scope and self.scope.owner(name) is not owner
        if size is not None and (size <= MOST_EMBEDDED or is_inside):
            constant = owner.constant(name)
            assert constant is not None
            return self._constant(constant)
        found = owner.producer(name)
        if size is None and found and self.knowledge.is_known(name, owner):
            self._node(*found, self._blocks[0])
            return self._ids[id(owner), name]
        if name not in self.inputs:
            self.inputs[name] = self._new(owner.dtype(name))
        return self.inputs[name]

    def _node(self, node: onnx.NodeProto, scope: Scope, block: _Block) -> None:
        if node.op_type == "Constant" or (id(scope), node.output[0]) in self._ids:
            return
        made = self.knowledge.instructions(node, scope)
        assert not isinstance(made, str), made
        for instruction in made:
            self._instruction(instruction, scope, block)
            if block is self._blocks[0]:
                self.made_by.append(node)

    def _instruction(self, instruction: Instruction, scope: Scope, block: _Block) -> None:
        inputs = [self._operand(x, scope, block) for x in instruction.inputs]
        attributes = list(instruction.attributes)
        if instruction.bodies:
            bodies = [self._body(body, scope) for body in instruction.bodies]
            at = _BODY_AT[instruction.operator]
            attributes[at:at] = [self._blocks.index(body) for body in bodies]
            captured = sorted(set[int]().union(*(b.uses - b.defines for b in bodies)))
            block.uses |= set(captured)
            inputs += captured
        outputs = []
        for name in instruction.outputs:
            made = self._new(scope.dtype(name) or self._dtype_between(instruction, name, inputs[0]))
            if name:
                self._ids[id(scope), name] = made
            outputs.append(made)
        block.defines |= set(outputs)
        number = operator_numbers()[instruction.operator]
        sizes = sum(1 << i for i in instruction.sizes if i < len(instruction.inputs))
        block.instructions += [number, len(inputs), len(outputs), len(attributes), sizes]
        block.instructions += [*inputs, *outputs, *attributes]
        block.count += 1

    def _dtype_between(self, instruction: Instruction, name: str, first: int) -> int:
        """Return the dtype of a result that is no value of the model."""
        if instruction.operator in ("Shape", "Bounds") or name.endswith(PLACES):
            return onnx.TensorProto.INT64
        return onnx.TensorProto.BOOL if instruction.operator == "Less" else self._dtypes[first]

    def _body(self, graph: onnx.GraphProto, outer: Scope) -> _Block:
        block, scope = _Block(), Scope(graph, outer)
        self._scopes.append(scope)
        self._blocks.append(block)
        for x in graph.input:
            made = self._new(scope.dtype(x.name))
            self._ids[id(scope), x.name] = made
            block.inputs.append(made)
        block.defines |= set(block.inputs)
        for node in graph.node:
            self._node(node, scope, block)
        block.outputs = [self._operand(x.name, scope, block) for x in graph.output]
        return block


class _Block:
    """A sequence of instructions."""

    def __init__(self) -> None:
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.instructions: list[int] = []
        self.count = 0
        self.uses: set[int] = set()
        self.defines: set[int] = set()

    def words(self) -> list[int]:
        """Return the block as words of the tape."""
        return [
            *(len(self.inputs), *self.inputs),
            *(len(self.outputs), *self.outputs),
            *(self.count, *self.instructions),
        ]
