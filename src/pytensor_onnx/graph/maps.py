"""Maps of probabilities, one for each row, which files of scikit-learn's converters return.

A model in memory has the matrix before the operator ZipMap in their place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

DOMAIN = "ai.onnx.ml"
MAPS = "maps"
"""Where the meta data of a model have the ZipMaps that are left out, by output."""

_OF_MAPS = ("map_type", "sequence_type")


def deserialized(source: Any) -> ir.Model:
    """Return the model of a message, or of the file of a path, with matrices in place of maps."""
    import onnx

    proto = onnx.load(source) if isinstance(source, Path) else source
    without, maps = without_maps(proto)
    model = ir.serde.deserialize_model(without)
    if maps:
        model.meta[MAPS] = maps
    return model


def without_maps(proto: Any) -> tuple[Any, dict[str, Any]]:
    """Return a model with the matrix before each ZipMap in place of its maps, and both by output.

    The second result has the ZipMaps, each with the type of its maps.

    Parameters
    ----------
    proto
        An ``onnx.ModelProto``, which is returned itself if it has no maps.
    """
    types = {v.name: v.type for v in proto.graph.output if v.type.WhichOneof("value") in _OF_MAPS}
    maps = {
        node.output[0]: (node, types[node.output[0]])
        for node in proto.graph.node
        if node.op_type == "ZipMap" and node.domain == DOMAIN and node.output[0] in types
    }
    if not maps:
        return proto, {}
    model = type(proto)()
    model.CopyFrom(proto)
    for node in model.graph.node:
        if node.output and node.output[0] in maps:
            node.op_type, node.domain = "Identity", ""
            node.ClearField("attribute")
    for value in model.graph.output:
        if value.name in maps:
            value.type.Clear()
            tensor = value.type.tensor_type
            tensor.elem_type = ir.DataType.FLOAT.value
            tensor.shape.dim.add()
            tensor.shape.dim.add(dim_value=_count_classes(maps[value.name][0]))
    return model, maps


def _count_classes(node: Any) -> int:
    return max((len(a.ints) or len(a.strings) for a in node.attribute), default=0)


def add_maps(proto: Any, maps: Mapping[str, Any]) -> None:
    """Add ZipMaps to a model whose outputs are the matrices that they take.

    Parameters
    ----------
    proto
        An ``onnx.ModelProto``, which is changed.
    maps
        ZipMaps with their types by output, of which those of other outputs are left out.
    """
    graph = proto.graph
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    for value in graph.output:
        if value.name not in maps:
            continue
        matrix = f"{value.name}_matrix"
        while matrix in taken:
            matrix += "_"
        for node in graph.node:
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    names[i] = matrix if name == value.name else name
        added = graph.node.add()
        made, type_ = maps[value.name]
        added.CopyFrom(made)
        added.ClearField("input")
        added.input.append(matrix)
        added.output[0] = value.name
        value.type.CopyFrom(type_)
        if all(opset.domain != DOMAIN for opset in proto.opset_import):
            proto.opset_import.add(domain=DOMAIN, version=1)


def as_arrays(results: Sequence[Any]) -> list[np.ndarray]:
    """Return results of a runtime, with a matrix for each list of maps.

    Examples
    --------
    >>> as_arrays([[{"a": 0.25, "b": 0.75}, {"a": 1.0, "b": 0.0}]])
    [array([[0.25, 0.75],
           [1.  , 0.  ]], dtype=float32)]
    """
    return [
        np.array([list(row.values()) for row in result], "float32")
        if isinstance(result, list) and all(isinstance(row, dict) for row in result)
        else result
        for result in results
    ]
