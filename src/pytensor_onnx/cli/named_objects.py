"""Objects of a user's modules by their names, and the export of each kind."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from pytensor_onnx.errors import ArgumentError, did_you_mean
from pytensor_onnx.extras import installs

_PACKAGES = ("pytensor", "pytensor_ml", "pytensor_onnx")


def named_object(name: str) -> Any:
    """Return an object from its name, such as ``package.module:model``.

    Modules of the present folder are found, too.

    Raises
    ------
    ArgumentError
        If the name has another form, the import fails, or the module has no such object.

    Examples
    --------
    >>> named_object("math:pi")
    3.141592653589793
    """
    module, colon, path = name.partition(":")
    if not (module and colon and path):
        raise ArgumentError(f"{name!r} is no name of an object: write package.module:name")
    value = _module(module)
    for part in path.split("."):
        try:
            value = getattr(value, part)
        except AttributeError as error:
            hint = did_you_mean(part, dir(value), "write package.module:name")
            raise ArgumentError(f"{module} has no object {path!r}: {hint}") from error
    return value


def _module(name: str) -> Any:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        advice = installs(str(error.name))
        text = f"{name} cannot be imported, {error}{f': {advice}' if advice else ''}"
        raise ArgumentError(text) from error
    # A user's module may raise anything, and end the program.
    except (Exception, SystemExit) as error:
        where = _line_of(error)
        raise ArgumentError(
            f"{name} cannot be imported, {type(error).__name__}: {error}{where}"
        ) from error


def _line_of(error: BaseException) -> str:
    """Return the last line of code that an error passed, as text to append to a message."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})" if trace else ""


def export_object(value: Any, **options: Any) -> Any:
    """Export a graph, a compiled function, a PyMC model or a network as a program.

    Parameters
    ----------
    value
        Inputs and outputs, an output, the result of `pytensor.function`, a PyMC model, or a network
        of pytensor-ml.
    options
        Those of `pytensor_onnx.export_onnx`.

    Raises
    ------
    PyTensorONNXError
        If it is something else, or cannot be exported.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> export_object(([x], x.sum())), export_object(x.sum())
    (ONNXProgram(x: float64[x_dim0] -> output_0: float64[]), ONNXProgram(x: float64[batch] -> ...
    """
    from pytensor.compile.executor import Function

    from pytensor_onnx import export_function_onnx, export_onnx

    if any(isinstance(f, Function) for f in (value, getattr(value, "f", None))):
        return export_function_onnx(value, **options)
    pymc = sys.modules.get("pymc")
    if pymc is not None and isinstance(value, pymc.Model):
        from pytensor_onnx.pymc import export_model

        return export_model(value, **options)
    if isinstance(value, tuple | list) and len(value) == 2:
        return export_onnx(*value, **options)
    if type(value).__module__.partition(".")[0] not in _PACKAGES:
        raise ArgumentError(
            f"an object of type {type(value).__name__} has no graph: name a tuple of inputs and "
            "outputs, an output, a compiled function, a PyMC model or a network of pytensor-ml"
        )
    return export_onnx(value, **options)
