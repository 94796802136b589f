"""Explain the time of a call: by region and node, with what stays outside of regions and why."""

from __future__ import annotations

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from pytensor_onnx import native
from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.kernels.graph_scope import constants_of
from pytensor_onnx.kernels.regions import counted
from pytensor_onnx.running.data_parts import DividedSession
from pytensor_onnx.running.profiling import node_times
from pytensor_onnx.running.session import Session

if TYPE_CHECKING:
    from pytensor_onnx.graph.names import Lines
    from pytensor_onnx.kernels.regions import Region

_MICROSECONDS = 1e6
_LONGEST_TEXT = 60
"""Characters of the longest list of operators in a table."""


@dataclass(frozen=True)
class PartTime:
    """The time of a part of a call: a node of ONNX Runtime, a region, or nodes of a region.

    Attributes
    ----------
    name
        Name of the region or node; empty for nodes of a region.
    operators
        Operators of the part, with their numbers.
    seconds
        Time of one call.
    reason
        Why ONNX Runtime runs the node and no region, empty for regions and their nodes.
    lines
        Lines of the user's code that made the nodes.
    parts
        Parts of a region: nodes that run together.
    """

    name: str
    operators: str
    seconds: float
    reason: str = ""
    lines: tuple[str, ...] = ()
    parts: tuple[PartTime, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """Where the time of a call goes; its text is a table.

    Attributes
    ----------
    seconds
        Time of one call of the session, the least of several.
    parts
        Parts of the call, the longest first, measured in other runs: nodes of ONNX Runtime by its
        profile, in whole microseconds, regions and their nodes by the least of the runs.
    notes
        Threads, and plans that regions refuse, make anew or make in the course of a run.
    """

    seconds: float
    parts: tuple[PartTime, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = [("µs", "%", "part", "made at")]
        total = max(self.seconds, sum(part.seconds for part in self.parts)) or 1.0
        for part in self.parts:
            what = f"{part.name}: {part.operators}" if part.name else part.operators
            reason = f" (no region: {part.reason})" if part.reason else ""
            rows.append(_row(part, total, f"{_short(what)}{reason}"))
            rows += [_row(x, total, f"  {_short(x.operators)}") for x in part.parts]
        rest = self.seconds - sum(part.seconds for part in self.parts)
        if rest > 0:
            rows.append(
                _row(PartTime("", "", rest), total, "the call itself, in Python and ONNX Runtime")
            )
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        table = [
            f"{a:>{widths[0]}}  {b:>{widths[1]}}  {c:<{widths[2]}}  {d}".rstrip()
            for a, b, c, d in rows
        ]
        return "\n".join([f"{_micro(self.seconds)} µs a call", *self.notes, "", *table])


def _micro(seconds: float) -> str:
    return f"{seconds * _MICROSECONDS:,.2f}"


def _row(part: PartTime, total: float, what: str) -> tuple[str, str, str, str]:
    return (
        _micro(part.seconds),
        f"{100 * part.seconds / total:.0f}",
        what,
        # The text of the line follows its place.
        ", ".join(dict.fromkeys(line.split("  ")[0] for line in part.lines)),
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"


def explain_call(session: Any, feed: Mapping[str, Any], calls: int = 100) -> Explanation:
    """Return where the time of a call of a session goes.

    Parameters
    ----------
    session
        A `Session`, which stays as it is, or a `DividedSession`: a note tells the time of its
        computation for new data.
    feed
        A value for each input.
    calls
        Number of calls that are timed, after one that is not.

    Raises
    ------
    PyTensorONNXError
        If the session is another one.
    """
    if isinstance(session, DividedSession):
        given = session.feed_of_rest(feed)
        if given is None:
            return explain_call(session.whole, feed, calls)
        data = {name: feed[name] for name in session.data.input_names}
        once = min(_seconds(session.data, data) for _ in range(calls))
        note = f"once for new data: {_micro(once)} µs ({session.division.line})"
        found = explain_call(session.rest, given, calls)
        return replace(found, notes=(*found.notes, note))
    if not isinstance(session, Session):
        raise PyTensorONNXError(
            "functions that are compiled with profile=True, or have nodes that run in Python, are "
            "not explained: profile=True tells the times of both"
        )
    feed = session.complete(feed)
    session.run(feed)
    seconds = min(_seconds(session, feed) for _ in range(calls))
    threads = session.runtime.get_session_options().intra_op_num_threads
    notes = [f"threads in an operator: {threads or 'one for each core'}"]
    notes += session.notes()
    nodes, times = _node_times(session, feed, calls)
    places = session.places()
    regions = {x.name: x for x in session.regions}
    tapes = _read_tapes(session, feed) if regions else {}
    parts = []
    for name, used in times.items():
        if name in tapes:
            part, note = _region_time(regions[name], used, *tapes[name], session.lines, calls)
            notes += [f"{name}: {note}"] if note else []
            parts.append(part)
        elif name in nodes:
            node = nodes[name]
            reason = next((places[x] for x in node.output if x in places), "")
            line = session.lines.get(("", name), "")
            parts.append(PartTime(name, node.op_type, used, reason, (line,) if line else ()))
    parts.sort(key=lambda part: -part.seconds)
    return Explanation(seconds, tuple(parts), tuple(notes))


def _seconds(session: Session, feed: Mapping[str, Any]) -> float:
    start = time.perf_counter()
    session.run(feed)
    return time.perf_counter() - start


def _node_times(
    session: Session, feed: Mapping[str, Any], calls: int
) -> tuple[dict[str, onnx.NodeProto], dict[str, float]]:
    """Return the nodes that the runtime runs by name, and the seconds of each in a call."""
    with tempfile.TemporaryDirectory(prefix="pytensor-onnx-explain-") as folder:
        optimized = Path(folder) / "optimized.onnx"
        runtime = session.load_again(
            profile_prefix=str(Path(folder) / "profile"), optimized_model_path=optimized
        )
        for _ in range(calls + 1):
            runtime.run(session.output_names, feed)
        runs = list(node_times(json.loads(Path(runtime.end_profiling()).read_text())))
        graph = onnx.load(optimized, load_external_data=False).graph
    times = defaultdict(list)
    for run in runs[1:]:
        for name, seconds in run:
            times[name].append(seconds)
    return {x.name: x for x in graph.node}, {x: _mean_without_ends(t) for x, t in times.items()}


def _mean_without_ends(times: list[float]) -> float:
    """Return the mean of the middle half of times, which come in whole microseconds."""
    middle = sorted(times)[len(times) // 4 : len(times) - len(times) // 4]
    return sum(middle) / len(middle)


Tape = tuple[bytes, list[np.ndarray], list[bool]]
"""A tape, the arrays of its inputs, and which of these are constants of the model."""


def _read_tapes(session: Session, feed: Mapping[str, Any]) -> dict[str, Tape]:
    """Return the tapes and operands of all regions outside of loops and branches."""
    model = onnx.load_model_from_string(session.serialized[0])
    graph = model.graph
    regions = [node for node in graph.node if node.domain == native.REGION_DOMAIN]
    constants = constants_of(graph)
    known = {**constants, **{x: np.asarray(v) for x, v in feed.items()}}
    typed = {x.name: x for x in (*graph.value_info, *graph.output)}
    given = {x.name for x in graph.output}
    read = dict.fromkeys(x for node in regions for x in node.input if x not in known)
    graph.output.extend(typed[x] for x in read if x not in given)
    if read:
        runtime = session.load_again(source=model.SerializeToString())
        known |= zip(read, runtime.run(list(read), feed), strict=True)
    return {
        node.name: (
            node.attribute[0].s,
            [np.ascontiguousarray(known[x]) for x in node.input],
            [x in constants for x in node.input],
        )
        for node in regions
    }


def _region_time(
    region: Region,
    used: float,
    tape: bytes,
    inputs: list[np.ndarray],
    held: list[bool],
    lines: Lines,
    calls: int,
) -> tuple[PartTime, str]:
    """Return the time of a region with its parts, the longest first, and a note on its plans."""
    operators = str(region).partition(": ")[2]
    try:
        whole, seconds, first, late = native.time_tape(
            tape, inputs, held, len(region.made_by), calls
        )
    except RuntimeError as error:
        note = f"refuses these inputs, so that ONNX Runtime runs all nodes: {error}"
        return PartTime(region.name, operators, used), note
    together: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for made_by, i in zip(region.made_by, first, strict=True):
        if i >= 0:
            together[i].append(made_by)
    parts = []
    for i in sorted(together, key=lambda i: -seconds[i]):
        nodes = dict.fromkeys(together[i])
        found = dict.fromkeys(lines.get(("", name), "") for name, _ in nodes)
        made_at = tuple(line for line in found if line)
        parts.append(PartTime("", counted(op for _, op in nodes), seconds[i], lines=made_at))
    note = f"makes {late} plans in the course of a run, as sizes depend on values" if late else ""
    return PartTime(region.name, operators, whole, parts=tuple(parts)), note
