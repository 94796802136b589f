"""Displays of long work."""

import io
import sys
import threading

import pytest

from pytensor_onnx import progress
from pytensor_onnx.progress import progress_bar, working


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal_of(monkeypatch, delay=0.0):
    monkeypatch.setattr(progress, "DELAY", delay)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def wait_for(terminal, text, after=0):
    for _ in range(500):
        if text in terminal.getvalue()[after:]:
            return
        threading.Event().wait(0.02)
    raise AssertionError(f"{text!r} is not in {terminal.getvalue()!r}")


def test_a_terminal_shows_the_work_and_the_work_within(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with working("exporting"):
        wait_for(terminal, "exporting")
        with working("comparing with [PyTensor]"):
            wait_for(terminal, "comparing with [PyTensor]")
        wait_for(terminal, "exporting", after=len(terminal.getvalue()))


def test_a_bar_has_the_share_of_the_work(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with progress_bar("measuring") as show:
        wait_for(terminal, "measuring")
        show(0.5)
        wait_for(terminal, "━", after=len(terminal.getvalue()))


def test_work_of_less_than_a_second_shows_nothing(monkeypatch):
    terminal = terminal_of(monkeypatch, delay=60.0)
    with pytest.raises(ValueError, match="wrong"), working("exporting"):
        raise ValueError("wrong")
    assert terminal.getvalue() == ""
    assert not progress._shown


def test_files_and_other_threads_show_nothing(monkeypatch):
    terminal = terminal_of(monkeypatch)

    def work():
        with working("exporting"):
            assert not progress._shown

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    work()
    assert sys.stderr.getvalue() == terminal.getvalue() == ""
