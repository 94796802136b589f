"""Collect garbage less often while a graph is rewritten and converted."""

import contextlib
import gc
from collections.abc import Iterator

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
