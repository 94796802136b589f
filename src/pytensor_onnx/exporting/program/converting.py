"""The conversion of a source to a model."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.changes import Change
from pytensor_onnx.conversion import ConversionOptions, convert
from pytensor_onnx.errors import PyTensorONNXError, UnsupportedOpError
from pytensor_onnx.exporting.requests.arguments import read_opset
from pytensor_onnx.exporting.requests.file_interface import describe_rows
from pytensor_onnx.exporting.requests.options import Request
from pytensor_onnx.exporting.verification.divergence import Conversion
from pytensor_onnx.exporting.verification.rounding import narrowed_for
from pytensor_onnx.graph.names import present, take_lines, take_owners
from pytensor_onnx.named_dims import is_tensor
from pytensor_onnx.pipeline import prepare
from pytensor_onnx.rewriting.query.encode_values import opened_for_portable


def convert_graph(written: FunctionGraph, request: Request) -> Conversion:
    """Convert a graph as written, for the target and in the floats that a request asks for.

    Raises
    ------
    UnsupportedOpError
        If the target cannot run it; the message says whether it runs in float32.
    """
    try:
        return _converted(written, request)
    except UnsupportedOpError as error:
        options = request.options
        if "float64" not in str(error) or options.precision is not None:
            raise
        try:
            _converted(written, replace(request, options=replace(options, precision="float32")))
        except PyTensorONNXError:
            raise error from None
        raise UnsupportedOpError(
            f'{error}\nWith precision="float32" the target runs all.'
        ) from None


def _converted(written: FunctionGraph, request: Request) -> Conversion:
    interface, options = request.interface, request.options
    profile = options.profile
    narrows_to_float32 = options.precision == "float32"
    narrowing, notes = narrowed_for(written, options.precision, profile.precision)
    reference = narrowing.narrow if narrowing else written
    fgraph = interface.rewritten(
        opened_for_portable(reference) if profile.is_portable else reference,
        is_as_in_file=request.is_as_in_file,
    )
    values = {
        variable: np.array(value, variable.type.dtype)
        for variable, value in zip(
            fgraph.inputs[interface.given.width :], request.state, strict=True
        )
    }
    opset = read_opset(options.opset_version, profile)
    is_open = options.opset_version is None and not profile.is_portable
    file = ConversionOptions(
        opset_version=opset,
        raised_opset=profile.max_opset if is_open else 0,
        as_imported=True,
        input_names=interface.input_tensors,
        output_names=interface.output_tensors,
        defaults=values if options.stores_state else {},
        dynamic_axes=request.axes,
        fixes_sizes=True,
        is_portable=profile.is_portable,
        widens=not (profile.is_portable and narrows_to_float32),
        masks_draws=profile.masks_draws,
        has_scan=profile.has_scan,
        dim_names=True,
        constant_names={name: weight.data for name, weight in weights_of(reference).items()},
        name=request.name,
    )
    converted = convert(fgraph, file)
    model = converted.model
    states = interface.states_of(model, list(values.values()))
    interface.describe(model, states, stores_values=options.stores_start)
    describe_rows(model, options.feature_names)
    signature = interface.signature(model)
    signature.describe_results(model)
    changes = prepare(
        converted,
        profile,
        assume_finite=options.assume_finite,
        inline=options.inline_functions,
        splits_words=profile.splits_words,
        opset_version=None if options.opset_version is None else opset,
    )
    return Conversion(
        model,
        reference,
        rewritten=fgraph,
        signature=signature,
        states=states,
        values={variable: present(value) for variable, value in converted.values.items()},
        owners=take_owners(model, fgraph),
        lines=take_lines(model),
        failures=converted.failures,
        changes=(*notes, *changes, *([Change(profile.advice)] if profile.advice else [])),
        target=options.target,
        narrowing=narrowing,
        request=request,
    )


def weights_of(fgraph: FunctionGraph) -> dict[str, Constant]:
    """Return the named constants of a graph, such as the values of shared variables.

    Names that stand for several constants are numbered in the order of the operands.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x, w, v = pt.vector("x"), pt.constant([1.0, 2.0], "w"), pt.constant([3.0, 4.0], "w")
    >>> weights = weights_of(FunctionGraph([x], [x * w + v], clone=False))
    >>> [(name, weight.data.tolist()) for name, weight in weights.items()]
    [('w', [1.0, 2.0]), ('w_1', [3.0, 4.0])]
    """
    named = [
        v
        for v in _leaves(fgraph.outputs)
        if isinstance(v, Constant) and v.name and is_tensor(v.type)
    ]
    taken = {v.name for v in named}
    weights: dict[str, Constant] = {}
    for constant in named:
        name, number = constant.name, 0
        while name in weights or (number and name in taken):
            number += 1
            name = f"{constant.name}_{number}"
        weights[name] = constant
    return weights


def _leaves(outputs: Sequence[Variable]) -> Iterator[Variable]:
    """Yield the variables without an owner, from the first operands to the last."""
    seen: set[Variable] = set()
    waiting = list(reversed(outputs))
    while waiting:
        variable = waiting.pop()
        if variable in seen:
            continue
        seen.add(variable)
        if variable.owner is None:
            yield variable
        else:
            waiting.extend(reversed(variable.owner.inputs))


_YOUNG_OBJECTS = 100_000


@contextlib.contextmanager
def fewer_collections() -> Iterator[None]:
    """Raise the number of new objects after which Python collects garbage.

    Each collection visits the graph, whose variables and nodes refer to each other: by Python's own
    threshold a third of the time goes to collections in a model of 200 variables, and more in
    larger ones.

    Examples
    --------
    >>> with fewer_collections():
    ...     gc.get_threshold()[0]
    100000
    """
    thresholds = gc.get_threshold()
    if not 0 < thresholds[0] < _YOUNG_OBJECTS:  # switched off, or raised by another thread
        yield
        return
    gc.set_threshold(_YOUNG_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
