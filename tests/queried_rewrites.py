"""Rewriters that PyTensor's modes query, kept from one compiled function to the next.

A query of PyTensor's database takes as long as rewriting a small graph, and each function that is
compiled makes one. A rewriter of its own also finds anew which of its rewrites an Op's class has.
"""

from collections.abc import Callable, Hashable
from typing import Any

from pytensor.compile.mode import optdb
from pytensor.configdefaults import config
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.graph.rewriting.db import RewriteDatabase, RewriteDatabaseQuery

_kept: dict[Hashable, GraphRewriter] = {}


def keep() -> None:
    """Keep the rewriters of queries from now on, until a rewrite is registered."""
    optdb.query = _kept_or(optdb.query)
    for change in ("add_tags", "remove_tags"):
        setattr(RewriteDatabase, change, _forgetting(getattr(RewriteDatabase, change)))


def forget() -> None:
    """Forget the rewriters, which hold every Op that they have seen."""
    _kept.clear()


def _kept_or(query: Callable[..., GraphRewriter]) -> Callable[..., GraphRewriter]:
    def kept_or_queried(*tags: Any, **options: Any) -> GraphRewriter:
        if options or len(tags) != 1 or not isinstance(tags[0], RewriteDatabaseQuery):
            return query(*tags, **options)
        wanted = tags[0]
        if wanted.subquery or wanted.extra_rewrites:
            return query(wanted)
        key = (
            *map(tuple, (wanted.include, wanted.require, wanted.exclude)),
            wanted.position_cutoff,
            wanted.name,
            config.optdb__position_cutoff,
            config.optdb__max_use_ratio,
        )
        if key not in _kept:
            _kept[key] = query(wanted)
        return _kept[key]

    return kept_or_queried


def _forgetting(change: Callable[..., None]) -> Callable[..., None]:
    def forget_and_change(*args: Any, **options: Any) -> None:
        forget()
        change(*args, **options)

    return forget_and_change
