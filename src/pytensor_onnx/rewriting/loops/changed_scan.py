"""Build a Scan with a new inner graph from an existing Scan."""

from collections.abc import Sequence

from pytensor.graph.basic import Variable
from pytensor.scan.op import Scan, ScanInfo


def loop_like(
    op: Scan,
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    info: ScanInfo | None = None,
) -> Scan:
    """Return a loop with another inner graph, and the name and options of a given loop.

    Parameters
    ----------
    op
        The given loop.
    inputs, outputs
        Inputs and outputs of the inner graph.
    info
        `ScanInfo` of the inner graph; by default that of the given loop.
    """
    return Scan(
        inputs,
        outputs,
        op.info if info is None else info,
        mode=op.mode,
        truncate_gradient=op.truncate_gradient,
        name=op.name,
        profile=op.profile,
        allow_gc=op.allow_gc,
        strict=op.strict,
    )
