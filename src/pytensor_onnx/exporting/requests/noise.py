"""Exports whose noise is an input, in place of the states of generators."""

from dataclasses import replace

from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.tensor.random.type import RandomType

from pytensor_onnx.errors import ArgumentError
from pytensor_onnx.exporting.requests.arguments import Arguments
from pytensor_onnx.rewriting.random.noise_inputs import with_noise_inputs

Updated = dict[SharedVariable, Variable]


def with_noise(rng: str, request: Arguments, updated: Updated) -> tuple[Arguments, Updated]:
    """Return the arguments and the updates of an export, without generators if asked for.

    Parameters
    ----------
    rng
        ``"state"`` or ``"inputs"``.
    request, updated
        Arguments and updates of the export.

    Raises
    ------
    ArgumentError
        If ``rng`` is neither.
    """
    if rng == "state":
        return request, updated
    if rng != "inputs":
        raise ArgumentError(f"rng is {rng!r}: give 'state' or 'inputs'")
    kept = {v: x for v, x in updated.items() if not isinstance(v.type, RandomType)}
    outputs, noise = with_noise_inputs([*request.results, *kept.values()])
    inputs = [x for x in request.inputs if not isinstance(x.type, RandomType)]
    count = len(request.results)
    return (
        replace(request, inputs=[*inputs, *noise], results=outputs[:count]),
        dict(zip(kept, outputs[count:], strict=True)),
    )
