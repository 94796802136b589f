"""Measure the times of the nodes of a PyTensor graph from ONNX Runtime's profile."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pytensor.compile.debug.profiling import ProfileStats
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx.running.session import Session, SessionOptions

_TIME = "_kernel_time"
_MICROSECOND = 1e-6


class ProfiledSession:
    """Session with a profile of its nodes by ONNX Runtime.

    The runtime writes the profile of a session once, when it is read; the next run starts another
    session.

    Parameters
    ----------
    open_session
        Function that loads the model with given options.
    options
        Options of ONNX Runtime.
    fgraph
        The PyTensor graph of the model.
    owners
        The node of the graph for the name of each value of the model.
    """

    def __init__(
        self,
        open_session: Callable[[SessionOptions], Session],
        options: SessionOptions | None,
        fgraph: FunctionGraph,
        owners: Mapping[str, Apply],
    ) -> None:
        self._open_session = open_session
        self._options = options or SessionOptions()
        self._fgraph = fgraph
        self._owners = owners
        self._nodes: dict[str, Apply] | None = None
        self._stats: ProfileStats | None = None
        self._runs = 0
        self._ignored = 0
        self._lock = threading.RLock()
        self._session: Session | None = None
        session = self._open()
        self.input_names = session.input_names
        self.output_names = session.output_names

    def run(self, feed: Mapping[str, Any]) -> list[np.ndarray]:
        """Run the model once, as `Session.run`."""
        with self._lock:
            session = self._session or self._open()
            self._runs += 1
            return session.run(feed)

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        """Run the model once for arrays of the inputs in order, as `Session`."""
        return self.run(dict(zip(self.input_names, arrays, strict=True)))

    def update_profile(self, stats: ProfileStats) -> None:
        """Make the times of all runs available in PyTensor's statistics."""
        if isinstance(stats.apply_time, _Collected):
            return
        # Statistics without the first call have new dictionaries after it.
        self._ignored = self._runs - 1 if self._stats is stats else 0
        self._stats = stats
        stats.apply_time = _Collected(self, defaultdict(float))
        stats.apply_callcount = _Collected(self, Counter())

    def collect(self) -> None:
        """Add the times of the runs since the last call to the statistics."""
        with self._lock:
            if self._session is None or self._stats is None or not self._runs:
                return
            path = Path(self._session.runtime.end_profiling())
            self._session = None
            runs = list(node_times(json.loads(path.read_text())))[self._ignored :]
            self._runs = self._ignored = 0
            nodes = self._nodes or {}
            seconds_of, calls_of = self._stats.apply_time.data, self._stats.apply_callcount.data
            for events in runs:
                for key in {nodes[name] for name, _ in events if name in nodes}:
                    calls_of[self._fgraph, key] += 1
                    self._stats.apply_cimpl[key] = True
                for name, seconds in events:
                    if name in nodes:
                        seconds_of[self._fgraph, nodes[name]] += seconds
            self._folder.cleanup()

    def _open(self) -> Session:
        self._folder = tempfile.TemporaryDirectory(prefix="pytensor-onnx-profile-")
        optimized = os.path.join(self._folder.name, "optimized.onnx")
        options = replace(
            self._options,
            profile_prefix=os.path.join(self._folder.name, "profile"),
            optimized_model_path=optimized if self._nodes is None else None,
        )
        self._session = self._open_session(options)
        if self._nodes is None:
            self._nodes = _owners_of_nodes(optimized, self._owners)
        return self._session


def profile_runs(
    open_session: Callable[[SessionOptions], Session],
    options: SessionOptions | None,
    fgraph: FunctionGraph,
    owners: Mapping[str, Apply],
    feed: Mapping[str, Any],
    calls: int,
) -> ProfileStats:
    """Return the statistics of several runs on one feed, after one warm-up run.

    Parameters
    ----------
    open_session, options, fgraph, owners
        As in `ProfiledSession`.
    feed
        A value for each input.
    calls
        Number of runs.
    """
    session = ProfiledSession(open_session, options, fgraph, owners)
    stats = ProfileStats(atexit_print=False)
    session.update_profile(stats)
    stats.reset()
    session.run(feed)
    start = time.perf_counter()
    for _ in range(calls):
        session.run(feed)
        session.update_profile(stats)
    stats.fct_call_time = stats.vm_call_time = time.perf_counter() - start
    stats.fct_callcount = calls
    stats.nb_nodes = len(fgraph.apply_nodes)
    stats.apply_time = defaultdict(float, stats.apply_time)
    stats.apply_callcount = Counter(dict(stats.apply_callcount))
    return stats


class _Collected(MutableMapping):
    """Dictionary that is filled from the runtime's profile on access."""

    def __init__(self, session: ProfiledSession, data: dict) -> None:
        self.session = session
        self.data = data

    def __getitem__(self, key: Any) -> Any:
        self.session.collect()
        return self.data[key]

    def __contains__(self, key: object) -> bool:
        self.session.collect()
        return key in self.data

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[key] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[key]

    def __iter__(self) -> Iterator:
        self.session.collect()
        return iter(self.data)

    def __len__(self) -> int:
        self.session.collect()
        return len(self.data)

    def __reduce__(self) -> tuple:
        """Include the times so far in copies and pickles."""
        self.session.collect()
        return dict, (dict(self.data),)


def node_times(events: Iterable[Mapping[str, Any]]) -> Iterator[list[tuple[str, float]]]:
    """Yield the names and seconds of the nodes of the main graph, for each run of a profile."""
    pending: list[Mapping[str, Any]] = []
    executed: list[tuple[str, float]] = []
    for event in events:
        name = event["name"]
        if event["cat"] == "Node" and name.endswith(_TIME):
            pending.append(event)
        elif name == "SequentialExecutor::Execute":
            # Nodes of loop and branch bodies precede the node that runs them.
            executed = []
            while pending and pending[-1]["ts"] >= event["ts"]:
                last = pending.pop()
                executed.append((last["name"].removesuffix(_TIME), last["dur"] * _MICROSECOND))
        elif name == "model_run":
            yield executed
            pending.clear()


def _owners_of_nodes(path: str, owners: Mapping[str, Apply]) -> dict[str, Apply]:
    """Return the PyTensor node of each node of an optimized model.

    Nodes that the runtime inserted belong to the node that uses their values first.
    """
    import onnx

    found: dict[str, Apply] = {}
    users: dict[str, Apply] = {}
    for node in reversed(onnx.load(path, load_external_data=False).graph.node):
        # A product fused with a factor has its own name before that of the fusion.
        fused = owners.get(node.name.split("/")[0])
        owner = _first(node.output, owners) or fused or _first(node.output, users)
        owner = owner or _first(node.input, owners)
        if owner is None:
            continue
        found[node.name] = owner
        users.update(dict.fromkeys(_read(node), owner))
    return found


def _read(node: Any) -> Iterator[str]:
    """Yield the values that a node reads, also in its subgraphs."""
    yield from node.input
    for attribute in node.attribute:
        for graph in [attribute.g, *attribute.graphs] if attribute.type in (5, 10) else ():
            for inner in graph.node:
                yield from _read(inner)


def _first(names: Iterable[str], owners: Mapping[str, Apply]) -> Apply | None:
    return next((owners[name] for name in names if name in owners), None)
