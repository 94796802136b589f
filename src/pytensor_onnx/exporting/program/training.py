"""Export a training step: loss, gradients and optimizer as one model with state."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.compile.ops import view_op
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import graph_inputs
from pytensor.link.basic import Container, PerformLinker
from pytensor.link.utils import map_storage
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.dynamic_axes import DynamicAxes, warn_of_lost_names
from pytensor_onnx.errors import ArgumentError, PyTensorONNXError
from pytensor_onnx.exporting.program.build_program import export_function
from pytensor_onnx.exporting.program.program import ONNXProgram
from pytensor_onnx.exporting.requests.arguments import as_variables, read_examples
from pytensor_onnx.exporting.requests.options import ExportOptions
from pytensor_onnx.exporting.requests.reference_graph import default_updates


def export_training_step(
    loss: TensorVariable,
    params: Sequence[SharedVariable],
    optimizer: Rule | Callable[..., Rule] | Updates,
    path: str | os.PathLike | None = None,
    *,
    inputs: Sequence[Variable] | None = None,
    extra_outputs: Sequence[Variable] = (),
    state_path: str | os.PathLike | None = None,
    dynamic_axes: DynamicAxes | None = None,
    example_inputs: Sequence[Any] | None = None,
    verify: bool = True,
    **options: Any,
) -> ONNXProgram:
    """Export one training step as a model, so that any ONNX runtime can train.

    The inputs are the data, the learning rate and the state: parameters, the optimizer's
    variables, step counters, running statistics, the generators of dropout. The outputs are the
    loss and the next state. The next value of the input ``W`` is the output ``W_next``; the
    metadata ``state`` of the model is a JSON object of all such pairs, ``parameters`` a list of the
    parameters among them. The state keeps its shapes.

    Parameters
    ----------
    loss
        0-d variable to minimise. Its output is named ``loss``.
    params
        Shared variables to train.
    optimizer
        One of

        - a rule ``(loss, params) -> updates`` such as ``adam(1e-3)`` of pytensor-ml. Its symbolic
          scalars become inputs, and so do 0-d shared variables that it reads but does not update:
          ``adam(pytensor.shared(0.001, name="rate"))``;
        - a function of the ``learning_rate`` that returns a rule, such as ``adam`` itself. The
          learning rate is then an input of that name. In a function without such an argument the
          first one is the learning rate, and names the input: ``sgd(lr, momentum=0.9)``;
        - the updates themselves.
    path
        File to write, optional.
    inputs
        The data inputs, in order; by default those of the loss and the extra outputs.
    extra_outputs
        Further outputs, computed before the update.
    state_path
        File for the initial state, ``*.npz`` or ``*.onnx``; without it, the initial values are the
        defaults of the inputs. The targets for the web and ``"node"`` need it, see `export_onnx`.
    dynamic_axes
        As in `export_onnx`. By default, the first axes of unknown size of all data inputs are one
        ``batch``.
    example_inputs, verify, options
        As in `export_onnx`.

    Raises
    ------
    PyTensorONNXError
        If a parameter has no update, or the optimizer is none of the above.

    Examples
    --------
    >>> import numpy as np, pytensor, pytensor.tensor as pt
    >>> from pytensor_onnx import export_training_step
    >>> x, w = pt.matrix("x"), pytensor.shared(np.array([1.0, 2.0]), name="w")
    >>> def descent(learning_rate):
    ...     return lambda loss, params: {
    ...         p: p - learning_rate * pt.grad(loss, p) for p in params
    ...     }
    >>> program = export_training_step(((x @ w) ** 2).mean(), [w], descent)
    >>> [value.name for value in program.inputs], list(program.state)
    (['x', 'learning_rate'], ['w'])
    >>> program([[1.0, 0.0], [0.0, 1.0]], 0.5), program.state["w"]
    (array(2.5), array([0.5, 1. ]))
    """
    given = {
        "path": path,
        "state_path": state_path,
        "dynamic_axes": dynamic_axes,
        "example_inputs": example_inputs,
        "verify": verify,
        **options,
    }
    step_keywords = ("inputs", "extra_outputs")
    read = ExportOptions.of("export_training_step", given, others=step_keywords)
    read.check_files(has_state=True)
    params = as_variables(params, "params")
    outputs = [_named_loss(loss), *as_variables(extra_outputs, "extra_outputs")]
    if not params:
        raise PyTensorONNXError("there are no parameters to train")
    with pytensor.config.change_flags(floatX=np.result_type(*(p.dtype for p in params)).name):
        updates = _scalars_as_inputs(updates_of(optimizer, loss, params), outputs)
    fixed = [p.name or str(p) for p in params if p not in updates]
    if fixed:
        raise PyTensorONNXError(f"the optimizer does not update {', '.join(fixed)}")
    data = as_variables(inputs, "inputs") if inputs is not None else _free_inputs(outputs)
    rates = [v for v in _free_inputs(list(updates.values())) if v not in data]
    function = _compile([*data, *rates], outputs, params, updates)
    axes = {**_batches(data), **(dynamic_axes or {})}
    program = _export_step(function, params, replace(read, dynamic_axes=axes))
    warn_of_lost_names(program.model.graph, dynamic_axes)
    return program


def _export_step(
    function: Any, params: Sequence[SharedVariable], options: ExportOptions
) -> ONNXProgram:
    """Export a compiled step; verify it with a history, and write its files."""
    program = export_function(
        function,
        replace(
            options,
            path=None,
            state_path=None,
            verify=False,
            state_defaults=options.state_path is None,
            static_state=True,
        ),
    )
    trained = [p.name for p in params if p.name in program.state]
    program.model.metadata_props["parameters"] = json.dumps(trained)
    if options.verify:
        # If a gradient is zero except for rounding, the first step of an optimizer without history
        # may have either sign.
        remembered = {k: np.ones_like(v) for k, v in program.state.items() if k not in trained}
        names = [str(value.name) for value in program.inputs]
        program.verify(read_examples(options.example_inputs, names), state=remembered)
    if options.state_path is not None:
        program.save_state(options.state_path)
    if options.path is not None:
        program.save(options.path)
    return program


def _named_loss(loss: TensorVariable) -> TensorVariable:
    if loss.type.ndim:
        raise PyTensorONNXError(
            f"the loss must be 0-d, and has {loss.type.ndim} axes: take its mean or sum"
        )
    named = view_op(loss)
    named.name = "loss"
    return named


def _scalars_as_inputs(
    updates: dict[SharedVariable, Variable], outputs: Sequence[Variable]
) -> dict[SharedVariable, Variable]:
    """Replace 0-d shared variables that only the optimizer reads by inputs."""
    read = set(graph_inputs(outputs))
    rates = {
        v: v.type(name=v.name)
        for v in graph_inputs(list(updates.values()))
        if isinstance(v, SharedVariable) and v not in updates and v not in read
        if isinstance(v, TensorVariable) and v.type.ndim == 0
    }
    values = clone_replace(list(updates.values()), rates) if rates else updates.values()
    return dict(zip(updates, values, strict=True))


def _free_inputs(variables: Sequence[Variable]) -> list[Variable]:
    """Return the inputs of a graph that are neither constants nor shared variables."""
    free = [v for v in graph_inputs(variables) if not isinstance(v, Constant | SharedVariable)]
    return list(dict.fromkeys(free))


def _compile(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    params: Sequence[SharedVariable],
    updates: Updates,
) -> Any:
    """Return the step as a function, only for the export of its graph."""
    mode = Mode(_Unlinked(), None)
    if "pytensor_ml" not in sys.modules:
        updates = {**updates, **default_updates(outputs, updates)}
        # A loss alone is no list, as in `compile_train`.
        results = outputs if len(outputs) > 1 else outputs[0]
        return pytensor.function(inputs, results, updates=updates, mode=mode)
    from pytensor_ml.optim import compile_train

    # It adds the updates of layers and schedules: running statistics, clocks, generators.
    loss, *extra = outputs
    return compile_train(
        loss,
        updates,
        parameters=params,
        inputs=inputs,
        extra_outputs=extra,
        compile_kwargs={"mode": mode},
    )


class _Unlinked(PerformLinker):
    """Linker that generates no code, which can take a minute."""

    def make_all(
        self, input_storage: Any = None, output_storage: Any = None, storage_map: Any = None
    ) -> tuple[Any, ...]:
        """Allocate the storage of shared variables."""
        graph = self.fgraph
        stored = map_storage(graph, graph.toposort(), input_storage, output_storage, storage_map)
        pairs = zip((graph.inputs, graph.outputs), stored, strict=False)
        inputs, outputs = (list(map(Container, *pair)) for pair in pairs)
        return (lambda: None), inputs, outputs, [], []


def _batches(data: Sequence[Variable]) -> dict[str, dict[int, str]]:
    return {
        v.name or f"input_{i}": {0: "batch"}
        for i, v in enumerate(data)
        if isinstance(v, TensorVariable) and v.type.ndim and v.type.shape[0] is None
    }


Updates = Mapping[SharedVariable, Variable]
Rule = Callable[[Variable, Sequence[SharedVariable]], Updates]
LEARNING_RATE = "learning_rate"


def updates_of(
    optimizer: Rule | Callable[..., Rule] | Updates,
    loss: TensorVariable,
    params: Sequence[SharedVariable],
) -> dict[SharedVariable, Variable]:
    """Return the updates of an optimizer; see `export_training_step` for its forms.

    Raises
    ------
    ArgumentError
        If it is none, or gives no updates.
    """
    if isinstance(optimizer, Mapping | list | tuple):
        return dict(optimizer)
    if not callable(optimizer):
        raise ArgumentError(
            f"the optimizer must be a rule or updates, not a {type(optimizer).__name__}"
        )
    rule: Callable[..., Any] = optimizer
    signature = inspect.signature(optimizer)
    rate = _rate_argument(signature)
    if rate is not None:
        rule = partial(rule, **{rate: pt.scalar(rate, dtype=pytensor.config.floatX)})
        # A function that requires the loss and the parameters is a rule already.
        if not _required(signature, rate):
            rule = rule()
    updates = rule(loss, params) if callable(rule) else rule
    if not isinstance(updates, Mapping | list | tuple):
        raise ArgumentError(
            f"the optimizer {optimizer!r} gives no updates, but a {type(updates).__name__}: give a "
            "rule (loss, params) -> updates, or a function of the learning rate that returns one"
        )
    return dict(updates)


def _rate_argument(signature: inspect.Signature) -> str | None:
    """Return the name of the learning rate argument, None without one.

    It is called ``learning_rate``, or is the first argument of a function without a second required
    one: an update rule needs the loss and the parameters.
    """
    kinds = [argument.kind for argument in signature.parameters.values()]
    if LEARNING_RATE in signature.parameters:
        return LEARNING_RATE
    if not kinds or kinds[0] is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        return None
    first = next(iter(signature.parameters))
    return None if _required(signature, first) else first


def _required(signature: inspect.Signature, name: str) -> list[str]:
    """Return the names of required arguments except the given one."""
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        argument.name
        for argument in signature.parameters.values()
        if argument.default is argument.empty and argument.kind not in optional
        if argument.name != name
    ]
