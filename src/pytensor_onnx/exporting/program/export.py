"""Export a graph or a compiled function, or compile a graph to ONNX Runtime."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pytensor.compile.executor import Function
from pytensor.compile.ops import view_op
from pytensor.gradient import grad
from pytensor.graph.basic import Variable

from pytensor_onnx.dynamic_axes import DynamicAxes, warn_of_lost_names
from pytensor_onnx.exporting.program.build_program import export_function, export_graph
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.requests.arguments import (
    as_variables,
)
from pytensor_onnx.exporting.requests.file_interface import Updates
from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.named_dims import is_tensor, without_named
from pytensor_onnx.running.session import SessionOptions

_GRAPH_KEYWORDS = ("updates", "rng")


def export_onnx(
    inputs: Sequence[Variable] | Variable | Any = None,
    outputs: Variable | Sequence[Variable] | Mapping[str, Variable] | Any = None,
    path: str | os.PathLike | None = None,
    *,
    output_names: Sequence[str] | None = None,
    updates: Updates | None = None,
    state_path: str | os.PathLike | None = None,
    dynamic_axes: DynamicAxes | None = None,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    feature_names: Mapping[str, Sequence[str]] | None = None,
    opset_version: int | str | None = None,
    target: str = "onnxruntime",
    runtime_version: str | None = None,
    verify: bool = True,
    assume_finite: bool = False,
    inline_functions: bool = False,
    precision: str | None = None,
    rng: str = "state",
    **session: Any,
) -> ONNXProgram:
    """Export a PyTensor graph as an ONNX model.

    Parameters
    ----------
    inputs
        Variables that become the inputs of the model, in order. A `Model` of pytensor-ml, or the
        output of its layers, may stand here alone: its inputs are found, in the order of the
        arguments of its operations, and it is exported as it predicts, without dropout and with
        running statistics.
    outputs
        Results of the model: a variable, a list of them, a dict of them by the names that the
        outputs get, or a `Model`. One that is None is left out of the file; the program returns it.
    path
        File to write; none unless given. It is written only when the conversion and the
        verification succeed, and it replaces an older file in one step.
    output_names
        Names of the outputs; those of the variables unless given.
    updates
        New values of shared variables. Each of them becomes an input, whose default is the present
        value, and an output named ``<name>_next``; the metadata ``state`` of the model is a JSON
        object of these pairs. Other shared variables are stored in the model.
    state_path
        Where the present values go instead, by `ONNXProgram.save_state`; inputs have no defaults.
        Needed for ``"web"``, ``"webgpu"`` and ``"node"``, which take no values for defaults. For
        ``"portable"``, the metadata have the values unless they go to a file.
    dynamic_axes
        Names for axes of unknown size: ``{"x": {0: "batch"}}``; a list of axes, ``{"x": [0]}``,
        leaves the names open. Axes of one name must have equal sizes. Sizes of outputs follow from
        those of the inputs; a name given for one is used where the graph has none. Named dimensions
        of `pytensor.xtensor` keep their names unless renamed here.
    example_inputs
        One array for each input, in a list or by name. The model is made for their shapes, but for
        the axes in ``dynamic_axes``, and verified on them.
    feature_names
        Names of the columns of matrices, inputs and outputs: ``{"x": ["age", "income"]}``. The
        metadata have them, and `pytensor_onnx.scoring.Scorer` fills ``x`` with these columns of a
        table.
    opset_version
        Version of the standard operator set, 13 to 28, or ``"latest"`` for the one whose operators
        the target is fastest with: 23, which has those of transformers. Unless given, it is 21, or
        a later one that operators of an imported file need. Below
        18, a graph that needs an operator which the opset lacks is refused with its name. 27 and
        28 need ONNX Runtime 1.32.
    target
        Runtime to export for: ``"onnxruntime"``, ``"web"``, ``"webgpu"``, ``"node"``, or
        ``"portable"`` for runtimes of other makers: functions written out, no defaults, no checks.
        ``"openvino"`` and ``"tract"`` also refuse operators without a right kernel there.
    runtime_version
        Lowest version of ONNX Runtime that loads the file, for target ``"onnxruntime"``: ``"1.18"``
        or later, ``"1.30"`` unless given. Below that, functions are written out, and a graph that
        the version cannot run is refused.
    verify
        Whether to check the model, load it and compare it with PyTensor.
    assume_finite
        Whether to leave out the guards that make maxima propagate NaN in runtimes that drop it.
    inline_functions
        Whether to write out the model-local functions, for runtimes that do not know them.
    precision
        ``"float32"`` or ``"float16"`` to replace all wider floats: of inputs, outputs, state and
        constants. The report gives the error that this brings and the operations that add most to
        it. Sums of float16 are accumulated in float32, and random numbers are other ones.
        ``"float64"`` keeps floats that the targets ``"web"`` and ``"webgpu"`` replace by float32.
    rng
        ``"inputs"`` to make the noise of random draws inputs, in place of generators.
    session
        ``providers`` and ``session_options`` of `compile_onnx`.

    Returns
    -------
    ONNXProgram
        The model, which can be called, saved, verified and reported on.

    Raises
    ------
    UnsupportedOpError, UnsupportedTypeError
        If parts of the graph cannot be converted; the message lists all of them.
    VerificationError
        If the model does not agree with PyTensor.
    ArgumentError, MissingFolderError
        If an argument is not one that the function takes, or the folder of a file is missing.
    InputError
        If the example inputs do not fit the inputs.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_onnx
    >>> x = pt.matrix("x")
    >>> program = export_onnx([x], pt.exp(x).sum(axis=0), dynamic_axes={"x": {0: "batch"}})
    >>> program([[0.0, 0.0], [0.0, 0.0]])
    array([2., 2.])
    """
    given = {
        "path": path,
        "output_names": output_names,
        "state_path": state_path,
        "dynamic_axes": dynamic_axes,
        "example_inputs": example_inputs,
        "feature_names": feature_names,
        "opset_version": opset_version,
        "target": target,
        "runtime_version": runtime_version,
        "verify": verify,
        "assume_finite": assume_finite,
        "inline_functions": inline_functions,
        "precision": precision,
    }
    options = ExportOptions.of("export_onnx", {**given, **session}, others=_GRAPH_KEYWORDS)
    program = export_graph(inputs, outputs, options, updates=updates, rng=rng)
    return _with_warning(program, options)


def export_function_onnx(
    function: Function, path: str | os.PathLike | None = None, **options: Any
) -> ONNXProgram:
    """Export a compiled PyTensor function, its updates included.

    Parameters
    ----------
    function
        The result of `pytensor.function`, in any mode, or a `PointFunc` of PyMC, such as
        ``model.compile_logp()``. Shared variables are exported with the values they have now.
    path
        File to write; none unless given.
    options
        Those of `export_onnx`.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> from pytensor_onnx import export_function_onnx
    >>> x, total = pt.scalar("x"), pytensor.shared(0.0, name="total")
    >>> add = pytensor.function([x], total, updates={total: total + x}, mode="FAST_COMPILE")
    >>> program = export_function_onnx(add)
    >>> program(2.0), program(3.0), program.state["total"]
    (array(0.), array(2.), array(5.))
    """
    read = ExportOptions.of("export_function_onnx", {"path": path, **options})
    return _with_warning(export_function(function, read), read)


def export_value_and_grad(
    inputs: Sequence[Variable],
    cost: Variable,
    wrt: Variable | Sequence[Variable] | None = None,
    path: str | os.PathLike | None = None,
    **options: Any,
) -> ONNXProgram:
    """Export a scalar cost together with its gradients, which share intermediate results.

    Parameters
    ----------
    inputs
        Variables that become the inputs of the model, in order.
    cost
        A 0-d variable; its output is named after it, or ``cost``.
    wrt
        What to differentiate by: inputs or shared variables; all float inputs unless given. The
        outputs are named ``grad_<name>``.
    path
        File to write; none unless given.
    options
        Those of `export_onnx`.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import export_value_and_grad
    >>> x = pt.vector("x")
    >>> program = export_value_and_grad([x], (x**2).sum())
    >>> program([1.0, 3.0])
    [array(10.), array([2., 6.])]
    >>> [value.name for value in program.model.graph.outputs]
    ['cost', 'grad_x']
    """
    further = {name: options.pop(name) for name in _GRAPH_KEYWORDS if name in options}
    read = ExportOptions.of(
        "export_value_and_grad", {"path": path, **options}, others=_GRAPH_KEYWORDS
    )
    inputs = as_variables(inputs, "inputs")
    (cost,) = as_variables(cost, "cost")
    if wrt is None:
        wrt = [v for v in inputs if is_tensor(v.type) and v.type.dtype.startswith("float")]
    variables = as_variables(wrt, "wrt")
    name, (cost,) = cost.name, without_named([cost])
    gradients = [view_op(g) for g in grad(cost, variables)]
    for i, (gradient, variable) in enumerate(zip(gradients, variables, strict=True)):
        gradient.name = f"grad_{variable.name or i}"
    value = view_op(cost)
    value.name = name or "cost"
    return _with_warning(export_graph(inputs, [value, *gradients], read, **further), read)


def compile_onnx(
    inputs: Sequence[Variable] | Variable | Any,
    outputs: Variable | Sequence[Variable] | Any = None,
    *,
    providers: str | Sequence[str] = "cpu",
    session_options: SessionOptions | None = None,
    **options: Any,
) -> ONNXProgram:
    """Compile a PyTensor graph to ONNX Runtime.

    Parameters
    ----------
    inputs, outputs
        As in `export_onnx`.
    providers
        Execution providers in order of preference: ``"cpu"``, ``"cuda"``, ….
    session_options
        How ONNX Runtime runs the model.
    options
        Those of `export_onnx`.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor_onnx import SessionOptions, compile_onnx
    >>> x = pt.vector("x")
    >>> f = compile_onnx([x], [x.max(), x.argmax()], session_options=SessionOptions(threads=1))
    >>> f([1.0, 5.0, 2.0])
    [array(5.), array(1)]
    """
    further = {name: options.pop(name) for name in _GRAPH_KEYWORDS if name in options}
    given = {"providers": providers, "session_options": session_options, **options}
    read = ExportOptions.of("compile_onnx", given, others=_GRAPH_KEYWORDS)
    return _with_warning(export_graph(inputs, outputs, read, **further), read)


def _with_warning(program: ONNXProgram, options: ExportOptions) -> ONNXProgram:
    """Warn of names of axes that the user gave, and that the file does not have."""
    warn_of_lost_names(program.model.graph, options.dynamic_axes)
    return program
