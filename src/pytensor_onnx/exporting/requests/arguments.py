"""Normalise and check the arguments of the exporting functions."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.compile.executor import Function
from pytensor.graph.basic import Constant, Variable

from pytensor_onnx.conversion import MIN_OPSET
from pytensor_onnx.dynamic_axes import DynamicAxes
from pytensor_onnx.errors import ArgumentError, InputError, did_you_mean
from pytensor_onnx.exporting.requests.output_names import FORM, read_names
from pytensor_onnx.ml.model import expand_model, is_model
from pytensor_onnx.running.linker import OPSET_VERSION
from pytensor_onnx.targets import Profile, get_profile

_SEED = "seed is an input of the file: program(seed=[1, 2], ...) draws two chains"
_STEPS = "the file has inputs for them: program(seed=[1, 2], warmup=500, draws=500)"
_HINTS = {
    "args": "inputs are variables; arrays to verify on are example_inputs",
    "chains": _SEED,
    "draws": _STEPS,
    "dynamic_shapes": "dynamic_axes={'x': {0: 'batch'}} names axes",
    "f": "the file to write is path",
    "input_names": "inputs have the names of their variables: x.name = 'pixels'",
    "model": f"give the inputs and the outputs: {FORM}",
    "opset": "did you mean opset_version?",
    "random_seed": _SEED,
    "tune": _STEPS,
    "warmup": _STEPS,
}


@dataclass
class Arguments:
    """Normalised arguments of `export_onnx`.

    Attributes
    ----------
    inputs, results
        Variables, in order.
    names
        Names of the results, None to use the names of their variables.
    path
        File to write.
    dynamic_axes
        Names of axes.
    returns_single
        Whether the output is a single variable, or one that a dict names, not a sequence.
    """

    inputs: list[Variable]
    results: list[Variable]
    names: list[str] | None
    path: str | os.PathLike | None
    dynamic_axes: DynamicAxes | None
    returns_single: bool


def read_arguments(
    inputs: Any,
    outputs: Any,
    path: Any,
    dynamic_axes: DynamicAxes | None,
    output_names: Sequence[str] | None,
) -> Arguments:
    """Normalise the arguments of `export_onnx`.

    Raises
    ------
    ArgumentError
        If an argument is invalid; the message lists the valid ones.
    """
    _refuse_other_orders(inputs, outputs)
    inputs, outputs, path, dynamic_axes = expand_model(inputs, outputs, path, dynamic_axes)
    names = read_names(output_names)
    is_single = isinstance(outputs, Variable)
    if isinstance(outputs, Mapping):
        is_single = len(outputs) == 1
        if names is not None:
            raise ArgumentError("the outputs are a dict, which names them: leave out output_names")
        names, outputs = read_names(list(outputs)), list(outputs.values())
    elif isinstance(outputs, list | tuple):
        # The elements of an imported sequence are a list.
        outputs = [v for given in outputs for v in (given if isinstance(given, list) else [given])]
    return Arguments(
        inputs=as_variables(inputs, "inputs"),
        results=as_variables(outputs, "outputs"),
        names=names,
        path=path,
        dynamic_axes=dynamic_axes,
        returns_single=is_single,
    )


def as_variables(given: Any, argument: str) -> list[Variable]:
    """Return a variable, or a sequence of variables, as a list.

    Raises
    ------
    ArgumentError
        For any other argument.
    """
    if isinstance(given, Variable):
        return [given]
    if isinstance(given, np.ndarray | Mapping) or not isinstance(given, Iterable):
        raise ArgumentError(f"{argument} is {_typed(given)}: {_wanted(given, argument)}")
    variables = list(given)
    for i, value in enumerate(variables):
        if not isinstance(value, Variable):
            raise ArgumentError(f"{argument}[{i}] is {_typed(value)}: {_wanted(value, argument)}")
        if argument == "inputs" and isinstance(value, Constant):
            raise ArgumentError(f"inputs[{i}] is the constant {value}, which is no input")
    if argument == "outputs" and not variables:
        raise ArgumentError(f"there are no outputs: {FORM}")
    return variables


def read_opset(version: int | str | None, profile: Profile) -> int:
    """Return the number of an opset, for ``"latest"`` the one that a target is fastest with.

    Without a version it is that of mode ONNX.

    Raises
    ------
    ArgumentError
        If it is another text, or an opset that the runtime does not know.

    Examples
    --------
    >>> read_opset("latest", get_profile("onnxruntime")), read_opset(21, get_profile("web"))
    (23, 21)
    """
    if version is None:
        return OPSET_VERSION
    if version == "latest":
        return profile.latest_opset
    if isinstance(version, str):
        raise ArgumentError(f"opset_version is a number or 'latest', not {version!r}")
    if not MIN_OPSET <= version <= profile.max_opset:
        raise ArgumentError(
            f"opset_version={version} is not supported: choose one from {MIN_OPSET} to "
            f"{profile.max_opset} for the target {profile.name!r}"
        )
    return version


def read_examples(examples: Any, names: Sequence[str]) -> list[Any] | None:
    """Return the example inputs in the order of the inputs.

    Raises
    ------
    InputError
        If their number is not that of the inputs.

    Examples
    --------
    >>> read_examples({"y": 2.0, "x": 1.0}, ["x", "y"])
    [1.0, 2.0]
    """
    if examples is None:
        return None
    if isinstance(examples, Mapping):
        unknown = [name for name in examples if name not in names]
        missing = [name for name in names if name not in examples]
        if unknown or missing:
            raise InputError(
                f"example_inputs has the names {list(examples)}, the inputs are {list(names)}"
            )
        return [examples[name] for name in names]
    if not isinstance(examples, list | tuple):
        examples = [examples]
    if len(examples) != len(names):
        raise InputError(
            f"example_inputs has {len(examples)} values, but there are {len(names)} inputs: "
            f"{', '.join(names) or 'none'}"
        )
    return list(examples)


def check_keywords(function: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise for unknown keywords of a function.

    Raises
    ------
    ArgumentError
        The message has the keyword and the most similar valid one.
    """
    for name in given:
        if name in known:
            continue
        takes = f"it takes {', '.join(sorted(known))}"
        hint = _HINTS.get(name) or did_you_mean(name, known, takes)
        raise ArgumentError(f"{function} has no argument {name!r}: {hint}")


def check_state_path(
    target: str, path: str | os.PathLike | None, state_path: str | os.PathLike | None
) -> None:
    """Raise if a target needs a state file and none is given."""
    profile = get_profile(target)
    # Metadata have the values in a portable file.
    needs_file = profile.refuses_defaults and not profile.is_portable
    if path is not None and state_path is None and needs_file:
        raise ArgumentError(
            f"a model with a state needs state_path='state.onnx' for target={target!r}: this "
            "runtime takes no value for an input that has a default, so the present values need a "
            "file of their own"
        )


def as_function(function: Any) -> Function:
    """Return a compiled function, also from a PointFunc of PyMC.

    Raises
    ------
    ArgumentError
        If it is no compiled function.
    """
    inner = getattr(function, "f", None)
    function = inner if isinstance(inner, Function) else function
    _refuse_pymc_models(function)
    if not isinstance(function, Function):
        raise ArgumentError(
            f"function is {_typed(function)}: give the result of pytensor.function, or variables "
            f"to {FORM}"
        )
    return function


def _refuse_other_orders(inputs: Any, outputs: Any) -> None:
    """Raise if the first two arguments are not inputs and outputs."""
    if isinstance(inputs, str | os.PathLike):
        raise ArgumentError(f"the path stands first: give it last, {FORM}")
    _refuse_pymc_models(inputs, outputs)
    for given in (inputs, outputs):
        if isinstance(given, Function) or isinstance(getattr(given, "f", None), Function):
            raise ArgumentError(
                "a compiled function is exported by export_function_onnx(function, 'model.onnx')"
            )
    if inputs is None:
        raise ArgumentError(f"give the inputs and the outputs: {FORM}")
    if is_model(inputs) and outputs is not None and not isinstance(outputs, str | os.PathLike):
        raise ArgumentError(
            "a model is exported alone, export_onnx(model, 'model.onnx'); arrays to verify on are "
            "example_inputs"
        )


def _refuse_pymc_models(*given: Any) -> None:
    module = sys.modules.get("pymc")
    if module is not None and any(isinstance(value, module.Model) for value in given):
        raise ArgumentError(
            "a PyMC model stands for several graphs: choose one, such as "
            "export_function_onnx(model.compile_logp(), 'model.onnx')"
        )


def _typed(value: Any) -> str:
    return "a NumPy array" if isinstance(value, np.ndarray) else f"of type {type(value).__name__}"


def _wanted(value: Any, argument: str) -> str:
    if callable(value) and not isinstance(value, Variable):
        return f"call it on variables, {FORM.replace('y', 'f(x)', 1)}"
    if isinstance(value, np.ndarray | np.generic | int | float) or hasattr(value, "__array__"):
        return "give variables; arrays to verify on are example_inputs"
    if isinstance(value, Mapping) and argument == "inputs":
        return "give a list of variables, which have the names of the inputs: x.name = 'pixels'"
    return f"give variables, {FORM}"
