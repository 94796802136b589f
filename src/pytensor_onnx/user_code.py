"""Find the origin of a variable: the line of the user's code and the original Ops."""

import contextlib
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytensor
from pytensor.graph.basic import Variable
from pytensor.graph.op import Op
from pytensor.graph.utils import simple_extract_stack

PACKAGES = tuple(str(Path(module).parent) for module in (__file__, str(pytensor.__file__)))
"""Folders of this package and PyTensor, whose lines are not the user's."""

NOT_OF_USERS = (*PACKAGES, str(Path(contextlib.__file__).with_suffix("")))
"""Files between a warning and the user's line."""

_INSTALLED = (
    *(Path(folder).as_posix() + "/" for folder in PACKAGES),
    *(Path(sysconfig.get_path(name)).as_posix() + "/" for name in ("stdlib", "platstdlib")),
    "<frozen",
)
_MOST_ORIGINS, _DEPTH = 8, 3


class Origin(NamedTuple):
    """An original Op, the name of its result and the trace of the user's code."""

    op: Op
    name: str | None
    trace: Any


@contextlib.contextmanager
def untraced() -> Iterator[None]:
    """Create variables without a trace, since the exporter's lines are not the user's."""
    limit = pytensor.config.traceback__compile_limit
    with pytensor.config.change_flags(traceback__limit=limit):
        yield


def trace_of_caller() -> Any:
    """Return the trace of the user's code that called this package, as PyTensor keeps traces."""
    limit = pytensor.config.traceback__limit
    stack = simple_extract_stack(limit=None if limit == -1 else limit, skips=PACKAGES)
    return [stack] if stack else stack


def user_line(variable: Variable) -> str:
    """Return ``file:line source`` of the user's code that made a variable, or an empty text."""
    return line_in(getattr(variable.tag, "trace", None))


def line_in(trace: Any) -> str:
    """Return the user's line in a trace of PyTensor."""
    for stack in trace or []:
        for filename, line, function, source in reversed(stack):
            if function != "make_node" and not _is_installed(filename):
                return f"{filename}:{line}  {source or ''}".rstrip()
    return ""


def origins_of(variable: Variable) -> tuple[Origin, ...]:
    """Return the original Ops of a variable, nearest first."""
    known: tuple[Origin, ...] | None = getattr(variable.tag, "origins", None)
    if known is not None:
        return known
    if variable.owner is None:
        return ()
    return (Origin(variable.owner.op, variable.name, getattr(variable.tag, "trace", None)),)


def replaced_by_rewrite(old: Variable) -> tuple[Origin, ...]:
    """Return the origins for the replacement of a variable: its own and those before it."""
    found = {(id(origin.op), id(origin.trace)): origin for origin in origins_of(old)}
    level = [old]
    for _ in range(_DEPTH):
        level = [x for y in level if y.owner is not None for x in y.owner.inputs][:_MOST_ORIGINS]
        for variable in level:
            for origin in origins_of(variable):
                found.setdefault((id(origin.op), id(origin.trace)), origin)
            if len(found) >= _MOST_ORIGINS:
                return tuple(found.values())[:_MOST_ORIGINS]
    return tuple(found.values())


@cache
def _is_installed(filename: str) -> bool:
    path = filename.replace("\\", "/")
    return "/site-packages/" in path or "/dist-packages/" in path or path.startswith(_INSTALLED)
