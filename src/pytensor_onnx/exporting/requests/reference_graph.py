"""The graph as the user wrote it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.graph.traversal import ancestors, applys_between, toposort
from pytensor.scan.op import Scan

from pytensor_onnx.encodings import constant_of, encoding_of, has_tensors
from pytensor_onnx.errors import InputError, PyTensorONNXError
from pytensor_onnx.exporting.requests.file_interface import Source
from pytensor_onnx.named_dims import is_tensor, lower_named
from pytensor_onnx.rewriting.elementwise.number_widths import widen_numbers
from pytensor_onnx.rewriting.engine.walkers import KeepOrigins
from pytensor_onnx.rewriting.loops.step_lookups import search_in_graph
from pytensor_onnx.rewriting.query.encode_values import encode_values, with_tensors
from pytensor_onnx.rewriting.query.registration import correct_all
from pytensor_onnx.rewriting.reductions import widen_all


def reference_graph(
    source: Source, example_inputs: Sequence[Any] | None, static_state: bool = False
) -> FunctionGraph:
    """Return the graph to export: constants in place of shared variables, shapes specialised."""
    inputs = [*source.inputs, *source.updates]
    replacements: dict[Variable, Variable] = {
        variable: constant_of(variable, value)
        for variable, value in source.values.items()
        if variable not in source.updates and has_tensors(variable.type)
    }
    # A loop cannot be made again from them: it refuses a state that is known to have a size of one
    # after a step, but not before. Nor can an operation in place, whose result may be larger.
    fixed = _operands_of_fixed([*source.results, *source.updates.values()])
    late = {v: (v.type(), c) for v, c in replacements.items() if v in fixed and _knows_more(c, v)}
    replacements.update((variable, stand_in) for variable, (stand_in, _) in late.items())
    for i, variable in enumerate(inputs):
        new = variable.type()
        if example_inputs is not None and i < len(source.inputs):
            new = _specialised(variable, example_inputs[i], source.dynamic[i])
        elif static_state and variable in source.updates and is_tensor(variable.type):
            new = variable.type.clone(shape=np.shape(source.values[variable]))()
        new.name = variable.name
        new.tag = variable.tag
        replacements[variable] = inputs[i] = new
    results = [*source.results, *source.updates.values()]
    if example_inputs is None and not static_state:
        results = clone_replace(results, replacements)
    else:
        results = _with_new_types(results, replacements)
    stand_ins = [stand_in for stand_in, _ in late.values()]
    fgraph = FunctionGraph([*inputs, *stand_ins], results, clone=False)
    for stand_in, constant in late.values():
        fgraph.replace(stand_in, constant, import_missing=True)
        fgraph.remove_input(fgraph.inputs.index(stand_in))
    correct_all(fgraph, range(len(source.results)))
    widen_all(fgraph, range(len(source.results)))
    widen_numbers.rewrite(fgraph)
    fgraph.attach_feature(KeepOrigins())
    lower_named(fgraph)
    search_in_graph.rewrite(fgraph)
    encode_values.rewrite(fgraph)
    return with_tensors(fgraph)


def _operands_of_fixed(results: Sequence[Variable]) -> set[Variable]:
    """Return the variables that loops and operations in place depend on."""
    nodes = applys_between([], results)
    fixed = [node for node in nodes if isinstance(node.op, Scan) or node.op.destroy_map]
    return set(ancestors([v for node in fixed for v in node.inputs]))


def _with_new_types(
    results: Sequence[Variable], replacements: dict[Variable, Variable]
) -> list[Variable]:
    """Replace variables by others of known shapes; infer the types of dependent variables anew."""
    known = dict(replacements)
    for node in toposort(results, blockers=known):
        new = node.clone_with_new_inputs([known.get(v, v) for v in node.inputs], strict=False)
        for old, result in zip(node.outputs, new.outputs, strict=True):
            known[old] = result
            result.name = old.name
            copy_stack_trace(old, result)
    return [known.get(v, v) for v in results]


def _knows_more(constant: Constant, variable: Variable) -> bool:
    """Return whether a constant is known to have sizes of one where its variable is not."""
    if not is_tensor(variable.type):
        return False
    return [n == 1 for n in constant.type.shape] != [n == 1 for n in variable.type.shape]


def _specialised(variable: Variable, example: Any, dynamic: Collection[int]) -> Variable:
    """Return a variable of the shape of an array, but for the axes that are to be dynamic."""
    if not is_tensor(variable.type):
        return variable.type()
    try:
        shape = variable.type.filter(example, allow_downcast=True).shape
    except (TypeError, ValueError) as error:
        raise InputError(f"the example of input {variable} does not fit it: {error}") from error
    kept = {axis % len(shape) for axis in dynamic if shape}
    sizes = [
        known if axis in kept else size
        for axis, (size, known) in enumerate(zip(shape, variable.type.shape, strict=True))
    ]
    return variable.type.clone(shape=sizes)()


def default_updates(
    outputs: Sequence[Variable], updates: Mapping[SharedVariable, Variable]
) -> dict[SharedVariable, Variable]:
    """Return the default updates of shared variables without updates.

    Parameters
    ----------
    outputs
        Variables to compute.
    updates
        The updates that are known.

    Raises
    ------
    PyTensorONNXError
        If a generator is drawn from twice, or by an operation whose next state is unknown.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> rng = pt.random.shared_rng(seed=0, name="rng")
    >>> second, x = rng.normal()
    >>> third, y = second.normal()
    >>> default_updates([x + y], {}) == {rng: third}
    True
    """
    fgraph = FunctionGraph(outputs=[*outputs, *updates.values()], clone=False)
    found: dict[SharedVariable, Variable] = {}
    for variable in fgraph.inputs:
        encoding = encoding_of(variable.type)
        if encoding is None or not isinstance(variable, SharedVariable) or variable in updates:
            continue
        following = encoding.following(fgraph, variable)
        if following is None:
            raise PyTensorONNXError(
                f"the next state of the {encoding.name} {variable} is unknown: "
                "add it to the updates"
            )
        if following is not variable:
            found[variable] = following
    return found
