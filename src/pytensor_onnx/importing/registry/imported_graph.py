"""The PyTensor graph of an ONNX model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.replace import vectorize_graph
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import ArgumentError, did_you_mean
from pytensor_onnx.importing.registry.graph_building import ModelSource, Trainable, build_graph
from pytensor_onnx.importing.registry.reading import read_model
from pytensor_onnx.progress import working


@working("importing")
def from_onnx(
    model: Any,
    inputs: Mapping[str, Any] | None = None,
    *,
    trainable: Trainable = False,
    shapes: Mapping[str, Any] | None = None,
) -> ImportedGraph:
    """Import an ONNX model as a PyTensor graph.

    The graph is one of PyTensor's own operations, and of `pytensor_onnx.nn`: it is differentiated,
    compiled by every mode, part of PyMC models, and exported again.

    Parameters
    ----------
    model
        Path of a file, its bytes, an ``onnx.ModelProto``, an ``onnx_ir.Model`` or an
        `ONNXProgram`.
    inputs
        Values or variables in place of inputs, by name. A graph of PyTensor knows its axes and
        ranks: where an operator takes axes or another number as an input that decides these, its
        value is given here. A variable makes the graph one of it.
    trainable
        Which weights become shared variables: all arrays of floats with at least one axis, but
        running statistics of BatchNormalization; or a function of name and array that tells.
    shapes
        Sizes of axes that the file leaves open: by name of the axis, ``{"batch": 1}``, or of the
        input, ``{"x": (1, None)}``. Axes broadcast only if their size is known to be one.

    Returns
    -------
    ImportedGraph
        With ``inputs``, ``outputs``, ``weights`` and ``state``; a call applies it to other
        variables.

    Raises
    ------
    UnsupportedOpError
        If nodes cannot be imported; the message lists all of them with the reasons.
    ArgumentError
        If a name is not one of the model, or a variable does not fit its input.
    PyTensorONNXError
        If the file is no ONNX model, or parts of it are missing.

    Examples
    --------
    >>> import numpy as np, pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx, from_onnx
    >>> x = pt.vector("x", dtype="float32")
    >>> graph = from_onnx(export_onnx([x], pt.tanh(x) * 2, output_names=["y"]))
    >>> graph.inputs, graph.outputs
    ([x], [y])
    >>> graph.outputs[0].eval({graph.inputs[0]: np.float32([0, 1])})
    array([0.       , 1.5231884], dtype=float32)
    """
    source = ModelSource(read_model(model), trainable, dict(shapes or {}))
    fixed = dict(inputs or {})
    built = build_graph(source, fixed, has_advice=True)
    return ImportedGraph(
        built.inputs,
        built.outputs,
        source.weights,
        source.state,
        built.updates,
        built.dynamic_axes,
        source,
        fixed,
    )


@dataclass
class ImportedGraph:
    """A PyTensor graph made from an ONNX model; see `from_onnx`.

    Attributes
    ----------
    inputs, outputs
        Variables with the names, dtypes and sizes of the file. Inputs that were given variables
        or values are not listed.
    weights
        The constants of the file by name: constants, or shared variables where they are trainable.
    state
        Shared variables for the state of a file that `pytensor_onnx.export_onnx` wrote with
        updates, by name.
    updates
        Their next values, and those of the generators of random operators.
    dynamic_axes
        Names of the axes whose sizes are open, as `pytensor_onnx.export_onnx` takes them.
    """

    inputs: list[TensorVariable]
    outputs: list[TensorVariable]
    weights: dict[str, Variable]
    state: dict[str, SharedVariable]
    updates: dict[SharedVariable, Variable]
    dynamic_axes: dict[str, dict[int, str]]
    _source: ModelSource = field(repr=False)
    _fixed: dict[str, Any] = field(repr=False)

    def __call__(
        self, *arguments: Any, vectorize: bool = False, **named: Any
    ) -> TensorVariable | list[TensorVariable]:
        """Return the outputs for other variables or values, with the same weights.

        Parameters
        ----------
        arguments, named
            Variables or arrays in place of the inputs, in order or by name.
        vectorize
            Whether arguments may have further axes in front, over which the graph is applied.

        Examples
        --------
        >>> import pytensor.tensor as pt
        >>> from pytensor_onnx import export_onnx, from_onnx
        >>> x = pt.vector("x")
        >>> total = from_onnx(export_onnx([x], x.sum()))
        >>> total(x=pt.constant([1.0, 2.0])).eval()
        array(3.)
        >>> total(pt.constant([[1.0, 2.0], [3.0, 4.0]]), vectorize=True).eval()
        array([3., 7.])
        """
        given = self._by_name(arguments, named)
        if vectorize:
            by_name = {str(v.name): v for v in self.inputs}
            outputs = vectorize_graph(
                self.outputs, {by_name[name]: pt.as_tensor(v) for name, v in given.items()}
            )
        else:
            outputs = build_graph(self._source, {**self._fixed, **given}).outputs
        return outputs[0] if len(outputs) == 1 else outputs

    def _by_name(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        names = [str(v.name) for v in self.inputs]
        if len(arguments) > len(names):
            raise ArgumentError(f"the graph has {len(names)} inputs; got {len(arguments)}")
        given = dict(zip(names, arguments, strict=False))
        for name, value in named.items():
            if name not in names:
                raise ArgumentError(
                    f"the graph has no input {name}: "
                    + did_you_mean(name, names, f"it has {', '.join(names)}")
                )
            if name in given:
                raise ArgumentError(f"the input {name} is given twice")
            given[name] = value
        missing = [name for name in names if name not in given]
        if missing:
            raise ArgumentError(f"no value is given for the inputs {', '.join(missing)}")
        return given
