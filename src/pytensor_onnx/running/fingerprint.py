"""Which results of a program have the same bits on all machines."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import onnx

from pytensor_onnx._version import __version__
from pytensor_onnx.errors import UncoveredError
from pytensor_onnx.kernels.graph_scope import captured, constants_of
from pytensor_onnx.kernels.regions import DOMAIN, Stayed, fuse

FINGERPRINT = "pytensor_fingerprint"
"""Key of the digest in the metadata of files that are exported with ``reproducible=True``."""


@dataclass(frozen=True)
class Fingerprint:
    """What decides the bits of a program's results.

    Attributes
    ----------
    sha256
        Digest of the model, its constants and the version of this package. Programs of one digest
        return the same bits for the same inputs, on all machines, if `is_reproducible` is true.
    stayed
        The nodes that ONNX Runtime runs, with the reasons, by the outputs that depend on them.
    """

    sha256: str
    stayed: Mapping[str, tuple[Stayed, ...]]

    @property
    def is_reproducible(self) -> bool:
        """Whether all outputs have the same bits on all machines."""
        return not any(self.stayed.values())

    def checked(self) -> Self:
        """Return the fingerprint if all outputs have the same bits on all machines.

        Raises
        ------
        UncoveredError
            If they have not; the message names the nodes and the reasons.
        """
        if not self.is_reproducible:
            raise UncoveredError(f"reproducible=True: the native library lacks nodes\n{self}")
        return self

    def __str__(self) -> str:
        lines = [f"sha256 {self.sha256}"]
        for name, nodes in self.stayed.items():
            reasons = dict.fromkeys(f"{node.operator} ({node.reason})" for node in nodes)
            same = "the same bits on all machines"
            lines.append(f"{name}: {'depends on ' + ', '.join(reasons) if nodes else same}")
        return "\n".join(lines)


def fingerprint_of(model: onnx.ModelProto) -> Fingerprint:
    """Return the fingerprint of a model, whose results are those of `reproducible=True`."""
    source = model.SerializeToString(deterministic=True)
    fusion = fuse(source, every_size=True)
    graph = onnx.load_model_from_string(fusion.model).graph if fusion.model else model.graph
    made = hashlib.sha256(__version__.encode())
    for node in graph.node:
        if node.domain == DOMAIN:
            made.update(node.attribute[0].s)
    for name, value in sorted(constants_of(graph).items()):
        made.update(f"{name} {value.dtype} {value.shape}".encode() + value.tobytes())
    if not fusion.is_whole:
        made.update(source)
    stayed_of = {name: node for node in fusion.stayed for name in node.values}
    found: dict[str, dict[int, Stayed]] = {}
    for node in graph.node:
        own = [stayed_of[x] for x in node.output if x in stayed_of]
        nodes = {id(x): x for x in own}
        for name in (*node.input, *captured(node)):
            nodes |= found.get(name, {})
        found |= dict.fromkeys(node.output, nodes)
    return Fingerprint(
        made.hexdigest(), {x.name: tuple(found.get(x.name, {}).values()) for x in graph.output}
    )
