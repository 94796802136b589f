"""Export a graph or a compiled function, or compile a graph to ONNX Runtime."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx_ir.passes.common import (
    DeduplicateInitializersPass,
    InlinePass,
    LiftConstantsToInitializersPass,
    NameFixPass,
)
from pytensor.compile.executor import Function
from pytensor.compile.ops import view_op
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.gradient import grad
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import graph_inputs

from pytensor_onnx.conversion import DynamicAxes, convert, names_of
from pytensor_onnx.dispatch.basic import user_line
from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.linker import ONNX, OPSET_VERSION
from pytensor_onnx.ml.model import open_model, warn_of_training
from pytensor_onnx.named_dims import is_tensor, without_named
from pytensor_onnx.pipeline import prepare
from pytensor_onnx.program import ONNXProgram, State
from pytensor_onnx.reference_graph import (
    Source,
    has_value,
    reference_graph,
    state_value,
    warn_of_constant_draws,
)
from pytensor_onnx.session import SessionOptions
from pytensor_onnx.targets import get_profile

Updates = Mapping[SharedVariable, Variable] | Iterable[tuple[SharedVariable, Variable]]


def export_onnx(
    inputs: Sequence[Variable] | Variable | Any,
    outputs: Variable | Sequence[Variable] | Any = None,
    path: str | os.PathLike | None = None,
    *,
    updates: Updates | None = None,
    state_path: str | os.PathLike | None = None,
    dynamic_axes: DynamicAxes | None = None,
    example_inputs: Sequence[Any] | None = None,
    opset_version: int = OPSET_VERSION,
    precision: str | None = None,
    target: str = "onnxruntime",
    verify: bool = True,
    assume_finite: bool = False,
    inline_functions: bool = False,
    **session: Any,
) -> ONNXProgram:
    """Export a PyTensor graph as an ONNX model.

    Parameters
    ----------
    inputs
        Variables that become the inputs of the model, in order. A `Model` of pytensor-ml, or the
        output of its layers, may stand here alone: its inputs are found, and it is exported as it
        predicts, without dropout and with running statistics.
    outputs
        What the model computes: a variable, a list of them or a `Model`.
    path
        File to write; none unless given. It is written only when the conversion and the
        verification succeed, and it replaces an older file in one step.
    updates
        New values of shared variables. Each of them becomes an input, whose default is the present
        value, and an output named ``<name>_next``; the metadata ``state`` of the model is a JSON
        object of these pairs. Other shared variables are stored in the model.
    state_path
        Where the present values go instead, as by `ONNXProgram.save_state`. The inputs then have
        no defaults. Browsers need it: ONNX Runtime Web takes no value for an input with a default.
    dynamic_axes
        Names for axes of unknown size: ``{"x": {0: "batch"}}``. Axes of one name must have equal
        sizes. Named dimensions of `pytensor.xtensor` keep their names unless renamed here.
    example_inputs
        One array for each input: the model is made for their shapes, and verified on them.
    opset_version
        Version of the standard operator set, 18 to 26.
    precision
        Reserved for models in a narrower dtype than the graph's.
    target
        What the model is made for: ``"onnxruntime"``, ``"web"`` or ``"standard"``.
    verify
        Whether to check the model, load it and compare it with PyTensor.
    assume_finite
        Whether to leave out the guards that make maxima propagate NaN in runtimes that drop it.
    inline_functions
        Whether to write out the model-local functions, for runtimes that do not know them.
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
    inputs, outputs, path, dynamic_axes = open_model(inputs, outputs, path, dynamic_axes)
    if not updates:
        warn_of_training(outputs)
    single = isinstance(outputs, Variable)
    results = [outputs] if isinstance(outputs, Variable) else list(outputs)
    updated = dict(updates or {})
    shared = _check_inputs(inputs, [*results, *updated.values()])
    opaque = [v for v in shared if v not in updated and not has_value(v)]
    check_updates(updated)
    source = Source(
        # What no tensor can hold stays an input, which the conversion then refuses with all else.
        inputs=[*inputs, *opaque],
        results=results,
        updates=updated,
        values={variable: variable.get_value(borrow=False) for variable in {*shared, *updated}},
        returns_single=single,
    )
    return _export(
        source,
        path,
        state_path=state_path,
        dynamic_axes=dynamic_axes,
        example_inputs=example_inputs,
        opset_version=opset_version,
        precision=precision,
        target=target,
        verify=verify,
        assume_finite=assume_finite,
        inline_functions=inline_functions,
        **session,
    )


def export_function_onnx(
    function: Function, path: str | os.PathLike | None = None, **options: Any
) -> ONNXProgram:
    """Export a compiled PyTensor function, its updates included.

    Parameters
    ----------
    function
        What `pytensor.function` returned, in any mode. Shared variables are exported with the
        values they have now.
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
    maker = function.maker
    fgraph = maker.fgraph.clone(check_integrity=False)
    updates = {
        fgraph.inputs[position]: fgraph.outputs[output]
        for output, position in (maker.fgraph.update_mapping or {}).items()
    }
    source = Source(inputs=[], results=fgraph.outputs[: len(maker.outputs)], updates=updates)
    source.returns_single = function.unpack_single
    for variable, spec, container in zip(
        fgraph.inputs, maker.inputs, function.input_storage, strict=True
    ):
        if variable in updates or (spec.implicit and has_value(variable)):
            source.values[variable] = container.data
        else:
            source.inputs.append(variable)
    return _export(source, path, **options)


def export_value_and_grad(
    inputs: Sequence[Variable],
    cost: Variable,
    wrt: Variable | Sequence[Variable] | None = None,
    path: str | os.PathLike | None = None,
    **options: Any,
) -> ONNXProgram:
    """Export a scalar cost together with its gradients, which share what they compute.

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
    if wrt is None:
        wrt = [v for v in inputs if v.type.dtype.startswith("float")]
    variables = [wrt] if isinstance(wrt, Variable) else list(wrt)
    name, cost = cost.name, without_named(cost)
    gradients = [view_op(g) for g in grad(cost, variables)]
    for i, (gradient, variable) in enumerate(zip(gradients, variables, strict=True)):
        gradient.name = f"grad_{variable.name or i}"
    value = view_op(cost)
    value.name = name or "cost"
    return export_onnx(inputs, [value, *gradients], path, **options)


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
    return export_onnx(
        inputs, outputs, providers=providers, session_options=session_options, **options
    )


def _export(
    source: Source,
    path: str | os.PathLike | None = None,
    *,
    state_path: str | os.PathLike | None = None,
    state_defaults: bool = True,
    static_state: bool = False,
    dynamic_axes: DynamicAxes | None = None,
    example_inputs: Sequence[Any] | None = None,
    opset_version: int = OPSET_VERSION,
    precision: str | None = None,
    target: str = "onnxruntime",
    verify: bool = True,
    assume_finite: bool = False,
    inline_functions: bool = False,
    providers: str | Sequence[str] = "cpu",
    session_options: SessionOptions | None = None,
) -> ONNXProgram:
    if precision is not None:
        raise PyTensorONNXError(
            f"precision={precision!r} is not available: build the graph in the dtype wanted"
        )
    get_profile(target)
    warn_of_constant_draws(source)
    reference = reference_graph(source, example_inputs, static_state)
    fgraph = reference.clone(check_integrity=False)
    ONNX.optimizer.rewrite(fgraph)

    if target == "web" and path is not None and source.updates:
        require_state_path(state_path)
    state_names = [v.name or f"state_{i}" for i, v in enumerate(source.updates)]
    values = [state_value(v, source.values[v]) for v in source.updates]
    state_inputs = fgraph.inputs[len(source.inputs) :]
    converted = convert(
        fgraph,
        opset_version=opset_version,
        input_names=[*names_of(source.inputs, "input"), *state_names],
        output_names=[
            *names_of(source.results, "output"),
            *(f"{name}_next" for name in state_names),
        ],
        defaults=dict(zip(state_inputs, values, strict=True))
        if state_defaults and state_path is None
        else {},
        dynamic_axes=dynamic_axes,
        dim_names=True,
        constant_names={
            constant.name: np.asarray(constant.data)
            for constant in reference.variables
            if isinstance(constant, Constant) and constant.name and is_tensor(constant.type)
        },
    )
    model = converted.model
    pairs = zip(
        model.graph.inputs[len(source.inputs) :],
        model.graph.outputs[len(source.results) :],
        values,
        strict=True,
    )
    states = [State(str(now.name), str(then.name), value) for now, then, value in pairs]
    if states:
        model.metadata_props["state"] = json.dumps({s.name: s.next_name for s in states})
    changes = prepare(converted, target, assume_finite=assume_finite)
    if inline_functions and model.functions:
        model = InlinePass()(model).model
        LiftConstantsToInitializersPass(size_limit=0)(model)
        DeduplicateInitializersPass()(model)
        # Values of a function may get the names that values of loops and branches have.
        NameFixPass()(model)
    program = ONNXProgram(
        model,
        reference=reference,
        rewritten=fgraph,
        states=states,
        returns_single=source.returns_single,
        failures=converted.failures,
        values=converted.values,
        changes=changes,
        target=target,
        providers=providers,
        session_options=session_options,
    )
    if verify:
        program.verify(example_inputs)
    if state_path is not None:
        program.save_state(state_path)
    if path is not None:
        program.save(path)
    return program


def _check_inputs(inputs: Sequence[Variable], results: Sequence[Variable]) -> list[SharedVariable]:
    """Return the shared variables that a graph uses; all else must be given as an input."""
    given = set(inputs)
    if len(given) != len(inputs):
        raise PyTensorONNXError("a variable stands more than once in the list of inputs")
    free = [v for v in graph_inputs(results, blockers=given) if v not in given]
    missing = [v for v in free if not isinstance(v, Constant | SharedVariable)]
    if missing:
        listing = "\n".join(f"- {v} of type {v.type}  {user_line(v)}".rstrip() for v in missing)
        raise PyTensorONNXError(
            f"the outputs depend on variables that are not among the inputs:\n{listing}"
        )
    return [v for v in free if isinstance(v, SharedVariable)]


def require_state_path(state_path: str | os.PathLike | None) -> None:
    """Raise unless the state of a model for browsers has a file of its own."""
    if state_path is None:
        raise PyTensorONNXError(
            'a model with a state needs state_path for target="web": ONNX Runtime Web takes no '
            "value for an input that has a default, so the present values need a file of their own"
        )


def check_updates(updates: Mapping[SharedVariable, Variable]) -> None:
    """Raise for new values that their shared variable could not hold."""
    problems = [
        f"- {variable} of type {variable.type} is updated by a value of type {new.type}"
        for variable, new in updates.items()
        if is_tensor(variable.type) and is_tensor(new.type)
        if new.type.dtype != variable.type.dtype or new.type.ndim != variable.type.ndim
    ]
    if problems:
        listing = "\n".join(problems)
        raise PyTensorONNXError(f"updates change the type of what they update:\n{listing}")
