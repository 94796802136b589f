"""Columns and labels of strings, which stay in the file: the graph has numbers in their place."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx_ir as ir

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.importing.registry.import_problems import numbers_of_strings
from pytensor_onnx.importing.registry.operator_imports import MACHINE_LEARNING
from pytensor_onnx.importing.registry.reading import cut, number_labels
from pytensor_onnx.ops.networks.kept_operator import MICROSOFT
from pytensor_onnx.user_code import NOT_OF_USERS

_START, _END = chr(2), chr(3)
"""Marks of the start and the end of a text."""
_FIRST_OPSET = 13
"""Opset from which nodes of encoders have the same meaning in the files of exports."""
_UNCHANGED = frozenset({"Cast", "Concat", "Flatten", "Gather", "Identity", "Reshape", "Transpose"})
"""Operators that have the same meaning before that opset."""


class StringEncoder:
    """The part of a file that makes numbers of its inputs of strings.

    Attributes
    ----------
    proto
        The part as an ``onnx.ModelProto``. Its metadata have the inputs of the file in order.
    """

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.proto = proto

    def __reduce__(self) -> tuple[Any, ...]:
        return _encoder_of, (self.proto.SerializeToString(),)

    @property
    def inputs(self) -> list[str]:
        """Names of the columns of strings."""
        return [value.name for value in self.proto.graph.input]

    @property
    def outputs(self) -> list[str]:
        """Names of the numbers that become of them."""
        return [value.name for value in self.proto.graph.output]

    def __call__(self, columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the numbers of columns of strings, by ONNX's evaluator."""
        if missing := [name for name in self.inputs if name not in columns]:
            raise ArgumentError(f"no strings are given for {', '.join(missing)}")
        given = {}
        for value in self.proto.graph.input:
            array = np.asarray(columns[value.name], dtype=object)
            rank = len(value.type.tensor_type.shape.dim)
            # A column of a table has one axis, and the inputs of converted pipelines have two.
            given[value.name] = array[:, None] if (array.ndim, rank) == (1, 2) else array
        return dict(zip(self.outputs, self._evaluator.run(None, given), strict=True))

    @cached_property
    def _evaluator(self) -> Any:
        from onnx.reference import ReferenceEvaluator
        from onnx.reference.op_run import OpRun

        def run(_: Any, texts: np.ndarray, **attributes: Any) -> tuple[np.ndarray]:
            return (tokenized(texts, **attributes),)

        tokenizer = type("Tokenizer", (OpRun,), {"op_domain": MICROSOFT, "_run": run})
        return ReferenceEvaluator(self.proto, new_ops=[tokenizer])


def tokenized(
    texts: np.ndarray,
    *,
    mark: int,
    mincharnum: int,
    pad_value: str,
    tokenexp: str = "",
    separators: Sequence[str] = (),
    **_: Any,
) -> np.ndarray:
    """Return the words of texts along a new last axis, as ONNX Runtime's Tokenizer.

    Parameters
    ----------
    texts
        Strings with one or two axes.
    mark
        Whether words stand between the marks of the start and the end of a text.
    mincharnum
        Number of characters of the shortest word.
    pad_value
        Word that fills the rows.
    tokenexp
        Regular expression of words.
    separators
        Regular expressions of the texts between words, in place of `tokenexp`; without any, each
        character is a word.

    Examples
    --------
    >>> texts = np.array(["the sun", "rain"], dtype=object)
    >>> tokenized(texts, mark=0, mincharnum=1, pad_value="#", tokenexp="[a-z]+").tolist()
    [['the', 'sun'], ['rain', '#']]
    """
    rows = []
    for text in texts.ravel().tolist():
        if tokenexp:
            words = [found.group() for found in re.finditer(tokenexp, text)]
        elif list(separators) in ([], [""]):
            words = list(text)
        else:
            words = re.split("|".join(f"(?:{separator})" for separator in separators), text)
        words = [word for word in words if len(word) >= max(mincharnum, 1)]
        rows.append([_START, *words, _END] if mark else words)
    width = max(map(len, rows), default=0)
    filled = [row + [pad_value] * (width - len(row)) for row in rows]
    return np.array(filled, dtype=object).reshape(*texts.shape, width)


def _encoder_of(data: bytes) -> StringEncoder:
    return StringEncoder(onnx.load_model_from_string(data))


def without_strings(
    model: ir.Model, given: Collection[str], outputs: Sequence[str] | None
) -> tuple[ir.Model, StringEncoder | None]:
    """Return the part of a model behind the encoders of its strings, and these.

    Parameters
    ----------
    model
        The model, which is returned itself if it takes no strings, if the numbers that become of
        them need other inputs, too, or if it is an encoder alone.
    given
        Names of inputs and inner values that the caller gives.
    outputs
        Names of the outputs, all if None.
    """
    graph = model.graph
    strings = [v for v in graph.inputs if v.dtype == ir.DataType.STRING and v.name not in given]
    numbers = [name for name in numbers_of_strings(graph) if name not in given]
    is_encoder = any(value.name in numbers for value in graph.outputs)
    if not strings or not numbers or is_encoder or model.functions:
        return model, None
    names = [str(value.name) for value in strings]
    try:
        part = ir.Model(ir.convenience.extract(graph, names, numbers), ir_version=model.ir_version)
        part.opset_imports.update(model.opset_imports)
        proto = onnx.shape_inference.infer_shapes(ir.to_proto(part))
    except (ValueError, RuntimeError):
        return model, None
    is_old = model.opset_imports.get("", _FIRST_OPSET) < _FIRST_OPSET
    operators = {node.op_type for node in part.graph if not node.domain}
    if is_old and operators - _UNCHANGED:
        return model, None
    for value in proto.graph.output:
        _add_type_of_counts(part.graph, value)
    types = {value.name: value.type.tensor_type for value in proto.graph.output}
    if not all(type_.elem_type and type_.HasField("shape") for type_ in types.values()):
        return model, None
    order = {str(i): str(value.name) for i, value in enumerate(graph.inputs)}
    onnx.helper.set_model_props(proto, order)
    kept = [str(v.name) for v in graph.inputs if v not in strings]
    rest = cut(model, [*given, *kept, *numbers], outputs)
    for value in rest.graph.inputs:
        if value.name in types:
            type_ = types[str(value.name)]
            value.type = ir.TensorType(ir.DataType(type_.elem_type))
            sizes = [d.dim_value if d.HasField("dim_value") else None for d in type_.shape.dim]
            value.shape = ir.Shape(sizes)
    if any(value.dtype == ir.DataType.STRING for value in rest.graph.inputs):
        return model, None
    warnings.warn(
        f"{', '.join(names)}: strings, which stay outside; the inputs {', '.join(numbers)} are the "
        "numbers that graph.encode({name: strings}) makes of them. A file of the unchanged graph "
        "takes the strings again",
        UserWarning,
        skip_file_prefixes=NOT_OF_USERS,
    )
    return rest, StringEncoder(proto)


def _add_type_of_counts(graph: ir.Graph, value: onnx.ValueInfoProto) -> None:
    """Add the type of counts of words, which shape inference lacks behind a Tokenizer."""
    (node,) = [v.producer() for v in graph.outputs if v.name == value.name]
    if node is None or node.op_type != "TfIdfVectorizer":
        return
    if node.inputs[0] is None or node.inputs[0].shape is not None:
        return
    columns = 1 + max(node.attributes["ngram_indexes"].as_ints())
    made = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, (None, columns))
    value.type.CopyFrom(made)


def numbered_labels(model: ir.Model) -> tuple[ir.Model, dict[str, list[str]]]:
    """Return a model whose labels are positions in place of strings, and the strings by output.

    The model is returned itself if it has no such labels, or other nodes take them.
    """
    if not any(_strings_of(node) for node in model.graph):
        return model, {}
    copy = model.clone()
    copy.meta.update(model.meta)
    found: dict[str, list[str]] = {}
    for node in copy.graph:
        strings = _strings_of(node)
        copies = [node.outputs[0]] if strings else []
        for value in copies:
            copies.extend(u.node.outputs[0] for u in value.uses() if u.node.op_type == "Identity")
        if not strings or any(u.node.op_type != "Identity" for v in copies for u in v.uses()):
            continue
        number_labels(node)
        for value in copies:
            value.type = ir.TensorType(ir.DataType.INT64)
            if value.is_graph_output():
                found[str(value.name)] = strings
    if found:
        warnings.warn(
            f"{', '.join(found)}: labels that are strings, imported as their positions in "
            "graph.labels. A file of the unchanged graph has the strings again",
            UserWarning,
            skip_file_prefixes=NOT_OF_USERS,
        )
    return copy, found


def _strings_of(node: ir.Node) -> list[str]:
    """Return the labels of a classifier that are strings."""
    attribute = node.attributes.get("classlabels_strings")
    is_classifier = node.domain == MACHINE_LEARNING and node.op_type.endswith("Classifier")
    return list(attribute.as_strings()) if attribute is not None and is_classifier else []
