"""Parts of files that models in memory do not have: maps of probabilities, encoders of strings.

Files of scikit-learn's converters return one map of probabilities for each row, and take columns
of strings. A model in memory has the matrix before the operator ZipMap in place of the maps, and
the numbers that become of the strings as inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

DOMAIN = "ai.onnx.ml"
MAPS = "maps"
"""Where the meta data of a model have the ZipMaps that are left out, by output."""

LABELS = "labels"
"""Where the meta data have the strings of labels that are positions, by output."""


@dataclass(frozen=True)
class ElementsOf:
    """The elements of an output that is a sequence in the file, and one or more outputs in memory.

    Attributes
    ----------
    name
        Name of the output in the file.
    position, count
        Position of the element and number of all; None for an array with all in its rows.
    """

    name: str
    position: int | None = None
    count: int = 1


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
    """Add ZipMaps to a model whose outputs are the matrices that they take, and strings of labels.

    Parameters
    ----------
    proto
        An ``onnx.ModelProto``, which is changed.
    maps
        ZipMaps with their types, lists of labels, or `ElementsOf` sequences, by output. Those of
        other outputs are left out.
    """
    graph = proto.graph
    _add_sequences(proto, {k: v for k, v in maps.items() if isinstance(v, ElementsOf)})
    maps = {k: v for k, v in maps.items() if not isinstance(v, ElementsOf)}
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    for value in graph.output:
        if value.name not in maps:
            continue
        if isinstance(maps[value.name], list):
            _add_labels(proto, value, maps[value.name])
            continue
        matrix = _renamed(graph, value.name, _free(f"{value.name}_matrix", taken))
        added = graph.node.add()
        made, type_ = maps[value.name]
        added.CopyFrom(made)
        added.ClearField("input")
        added.input.append(matrix)
        added.output[0] = value.name
        value.type.CopyFrom(type_)
        if all(opset.domain != DOMAIN for opset in proto.opset_import):
            proto.opset_import.add(domain=DOMAIN, version=1)


def _add_sequences(proto: Any, parts: Mapping[str, ElementsOf]) -> None:
    """Make sequences of outputs that are their elements, where all of one are outputs."""
    graph = proto.graph
    values = {value.name: value for value in graph.output}
    groups: dict[str, list[str]] = {}
    for name, part in parts.items():
        if name in values:
            groups.setdefault(part.name, []).append(name)
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    made = {}
    for name, elements in groups.items():
        first = parts[elements[0]]
        if first.position is None:
            type_ = values[name].type.tensor_type
            del type_.shape.dim[0]
            operator, attributes = "SplitToSequence", {"axis": 0, "keepdims": 0}
            inputs = [_renamed(graph, name, _free(f"{name}_rows", taken))]
        elif [parts[e].position for e in elements] == list(range(first.count)):
            operator, attributes, inputs = "SequenceConstruct", {}, elements
            type_ = _common_type([values[e].type.tensor_type for e in elements])
        else:
            continue
        import onnx.helper

        graph.node.append(onnx.helper.make_node(operator, inputs, [name], **attributes))
        sequence = type(graph.output[0])(name=name)
        sequence.type.sequence_type.elem_type.tensor_type.CopyFrom(type_)
        made.update(dict.fromkeys(elements, None) | {elements[0]: sequence})
    outputs = [made.get(v.name, v) for v in graph.output]
    kept = [type(graph.output[0]).FromString(v.SerializeToString()) for v in outputs if v]
    del graph.output[:]
    graph.output.extend(kept)


def _common_type(types: Sequence[Any]) -> Any:
    """Return the type of the elements of a sequence, without the sizes in which they differ."""
    common = type(types[0]).FromString(types[0].SerializeToString())
    for other in types[1:]:
        if len(other.shape.dim) != len(common.shape.dim):
            common.ClearField("shape")
            break
        for own, dim in zip(common.shape.dim, other.shape.dim, strict=True):
            if own != dim:
                own.Clear()
    return common


def _renamed(graph: Any, name: str, new: str) -> str:
    """Give a value of a graph another name."""
    for node in graph.node:
        for names in (node.input, node.output):
            for i, old in enumerate(names):
                names[i] = new if old == name else old
    return new


def _add_labels(proto: Any, value: Any, labels: list[str]) -> None:
    """Replace positions of labels by the labels: in the classifier, or by an encoder behind it."""
    graph = proto.graph
    texts = [label.encode() for label in labels]
    value.type.tensor_type.elem_type = ir.DataType.STRING.value
    is_read = any(value.name in node.input for node in graph.node)
    for node in graph.node:
        if is_read or node.domain != DOMAIN or value.name not in node.output:
            continue
        for attribute in node.attribute:
            is_label = attribute.name in ("classlabels_ints", "classlabels_int64s")
            if is_label and list(attribute.ints) == list(range(len(labels))):
                attribute.ClearField("ints")
                attribute.name, attribute.type = "classlabels_strings", attribute.STRINGS
                attribute.strings.extend(texts)
                return
    import onnx.helper

    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    position = _renamed(graph, value.name, _free(f"{value.name}_position", taken))
    encoder = {"keys_int64s": list(range(len(labels))), "values_strings": texts}
    made = onnx.helper.make_node("LabelEncoder", [position], [value.name], domain=DOMAIN, **encoder)
    graph.node.append(made)
    known = {opset.domain: opset for opset in proto.opset_import}
    if DOMAIN not in known:
        proto.opset_import.add(domain=DOMAIN, version=2)
    else:
        known[DOMAIN].version = max(known[DOMAIN].version, 2)


def as_arrays(results: Sequence[Any]) -> list[np.ndarray]:
    """Return results of a runtime: a matrix for each list of maps, and the elements of sequences.

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
        for listed in results
        for result in _elements(listed)
    ]


def _elements(result: Any) -> list[Any]:
    is_sequence = isinstance(result, list) and not any(isinstance(v, dict) for v in result)
    return result if is_sequence else [result]


def add_encoder(proto: Any, encoder: Any) -> None:
    """Put the nodes that make numbers of strings before a model that takes the numbers.

    Parameters
    ----------
    proto
        An ``onnx.ModelProto``, which is changed.
    encoder
        An ``onnx.ModelProto`` whose outputs are inputs of the model.
    """
    graph, part = proto.graph, encoder.graph
    numbers = {value.name for value in part.output}
    kept = [value for value in graph.input if value.name not in numbers]
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    taken |= {value.name for value in (*graph.initializer, *kept)}
    taken -= numbers
    inner = [value.name for value in part.initializer]
    inner += [name for node in part.node for name in node.output if name not in numbers]
    renamed = {name: _free(name, taken) for name in inner if name in taken}
    nodes = []
    for node in part.node:
        copy = type(node)()
        copy.CopyFrom(node)
        for names in (copy.input, copy.output):
            for i, name in enumerate(names):
                names[i] = renamed.get(name, name)
        nodes.append(copy)
    for value in part.initializer:
        added = graph.initializer.add()
        added.CopyFrom(value)
        added.name = renamed.get(value.name, value.name)
    after = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *after])
    inputs = [*part.input, *kept]
    order = {p.value: i for i, p in enumerate(encoder.metadata_props)}
    del graph.input[:]
    graph.input.extend(sorted(inputs, key=lambda value: order.get(value.name, len(order))))
    known = {opset.domain: opset for opset in proto.opset_import}
    for opset in encoder.opset_import:
        if opset.domain not in known:
            proto.opset_import.append(opset)
        elif opset.domain == DOMAIN:
            known[DOMAIN].version = max(known[DOMAIN].version, opset.version)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
