"""Show on a terminal that work goes on, once it has taken a second.

`working` and `progress_bar` are for everything that users wait for: exports, imports, verification
and the commands. They write to the standard error of a terminal, and nothing to files, pipes and
notebooks. Within each other, the outer display takes the description of the inner work.

    with working("exporting"):
        ...
        with working("comparing with PyTensor"):
            ...
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

DELAY = 1.0
"""Seconds of work before a display appears."""


class _Display:
    """A line on a terminal for a piece of work and the pieces within it."""

    def __init__(self, on: str, *, has_share: bool) -> None:
        self._descriptions, self._share = [on], 0.0 if has_share else None
        self._lock, self._is_over = threading.Lock(), False
        self._progress: Progress | None = None
        self._timer = threading.Timer(DELAY, self._appear)
        self._timer.daemon = True
        self._timer.start()

    def _appear(self) -> None:
        with self._lock:
            if not self._is_over:
                progress = self._progress = _progress(has_share=self._share is not None)
                total = None if self._share is None else 1.0
                self._task = progress.add_task(self._descriptions[-1], total=total)
                progress.start()

    def _show(self) -> None:
        if self._progress is not None:
            description, share = self._descriptions[-1], self._share
            self._progress.update(self._task, description=description, completed=share)

    def enter(self, on: str) -> None:
        with self._lock:
            self._descriptions.append(on)
            self._show()

    def leave(self) -> None:
        with self._lock:
            self._descriptions.pop()
            self._show()

    def advance(self, share: float) -> None:
        with self._lock:
            self._share = share
            self._show()

    def end(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._is_over = True
            if self._progress is not None:
                self._progress.stop()


_shown: list[_Display] = []
"""The display of the outermost work, if any."""


@contextmanager
def working(on: str) -> Iterator[None]:
    """Show work of unknown length on the terminal, after a second.

    Parameters
    ----------
    on
        The work, as in ``"exporting"``.

    Examples
    --------
    >>> with working("exporting"):
    ...     pass
    """
    with _display(on, has_share=False):
        yield


@contextmanager
def progress_bar(on: str) -> Iterator[Callable[[float], None]]:
    """Yield a function that shows the share of the work that is done, from 0 to 1.

    Examples
    --------
    >>> with progress_bar("measuring") as progress:
    ...     progress(0.5)
    """
    with _display(on, has_share=True) as display:
        yield (lambda share: None) if display is None else display.advance


@contextmanager
def _display(on: str, *, has_share: bool) -> Iterator[_Display | None]:
    """Start a display, or take the present one; none off the terminal and in other threads."""
    if threading.current_thread() is not threading.main_thread():
        yield None
    elif _shown:
        _shown[0].enter(on)
        try:
            yield None
        finally:
            _shown[0].leave()
    elif sys.stderr is None or not sys.stderr.isatty():
        yield None
    else:
        _shown.append(display := _Display(on, has_share=has_share))
        try:
            yield display
        finally:
            _shown.clear()
            display.end()


def _progress(*, has_share: bool) -> Progress:
    """Return a display on the standard error that vanishes at its end."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    text = TextColumn("{task.description}", markup=False)
    columns = (
        (text, BarColumn(), TimeRemainingColumn())
        if has_share
        else (SpinnerColumn(), text, TimeElapsedColumn())
    )
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, redirect_stdout=False)
