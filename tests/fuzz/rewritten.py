"""Graphs as PyTensor's own rewrites leave them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace

from tests.fuzz.evaluation import Evaluation
from tests.fuzz.implementation import REWRITTEN, NoReferenceError

# PyTensor's rewrites of loops may fail, or lose steps, beside its algebra.
WITHOUT_LOOPS_REWRITTEN = REWRITTEN.excluding("scan")


def known_loss(
    written: Evaluation, loss: Variable, given: Mapping[Variable, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the elements of a loss, or of its gradient, and the tolerances for them.

    Where an element is infinite or NaN as the graph is written, or rounding decides it, PyTensor's
    rewrites may give it. Where they do not either, the tolerance is NaN.

    Parameters
    ----------
    written
        Values of the graph as it is written.
    loss
        The result wanted.
    given
        Values of all inputs and shared variables.
    """
    symbols = {variable: variable.type() for variable in given}
    graph = FunctionGraph(list(symbols.values()), [clone_replace(loss, symbols)], clone=False)
    REWRITTEN.optimizer.rewrite(graph)
    rewritten = Evaluation()
    for variable, value in given.items():
        rewritten.give(symbols[variable], value)
    sources = [(written, loss)]
    try:
        rewritten.evaluate(graph.outputs)
        sources.append((rewritten, graph.outputs[0]))
    except NoReferenceError:
        pass
    known = [source.is_known(variable) for source, variable in sources]
    values = [source.expected(variable) for source, variable in sources]
    tolerances = [source.tolerances(variable) for source, variable in sources]
    return np.select(known, values, np.nan), np.select(known, tolerances, np.nan)
