"""Find the default updates of shared variables, such as the next state of a generator."""

from collections.abc import Mapping, Sequence

from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.encodings import encoding_of
from pytensor_onnx.errors import PyTensorONNXError


def default_updates(
    outputs: Sequence[Variable], updates: Mapping[SharedVariable, Variable]
) -> dict[SharedVariable, Variable]:
    """Return the default updates of shared variables without updates.

    Parameters
    ----------
    outputs
        Variables to compute.
    updates
        The updates that are known.

    Raises
    ------
    PyTensorONNXError
        If a generator is drawn from twice, or by an operation whose next state is unknown.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> rng = pt.random.shared_rng(seed=0, name="rng")
    >>> second, x = rng.normal()
    >>> third, y = second.normal()
    >>> default_updates([x + y], {}) == {rng: third}
    True
    """
    fgraph = FunctionGraph(outputs=[*outputs, *updates.values()], clone=False)
    found: dict[SharedVariable, Variable] = {}
    for variable in fgraph.inputs:
        encoding = encoding_of(variable.type)
        if encoding is None or not isinstance(variable, SharedVariable) or variable in updates:
            continue
        following = encoding.following(fgraph, variable)
        if following is None:
            raise PyTensorONNXError(
                f"the next state of the {encoding.name} {variable} is unknown: "
                "add it to the updates"
            )
        if following is not variable:
            found[variable] = following
    return found
