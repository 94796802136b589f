"""Loops that differ from others in their inner graph only."""

from collections.abc import Sequence

from pytensor.graph.basic import Variable
from pytensor.scan.op import Scan, ScanInfo


def loop_like(
    op: Scan,
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    info: ScanInfo | None = None,
) -> Scan:
    """Return a loop with another inner graph, and with the name and the options of a given one.

    Parameters
    ----------
    op
        The given loop.
    inputs, outputs
        Those of the inner graph.
    info
        What they stand for; as in the given loop unless given.
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
