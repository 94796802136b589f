"""Pause Python's search for reference cycles while a graph is converted.

A conversion imports modules and makes nodes, and nearly all of these objects stay. The search finds
no garbage among them but visits all objects of the process, which takes 80 ms if PyMC is loaded.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the collection of reference cycles if it is on, and turn it on again at the end.

    Examples
    --------
    >>> import gc
    >>> with collection_paused():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
