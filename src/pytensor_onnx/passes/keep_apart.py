"""Protection of a model from a runtime whose own optimizer changes its results.

Such an optimizer matches small patterns, and sees them through functions, known conditions and what
it computes of constants and sizes. Each rule takes the nodes of some operators to forms that the
optimizer leaves alone: the same results, at the price of a copy at most.
"""

from collections import Counter
from collections.abc import Callable

import onnx_ir as ir

from pytensor_onnx.passes.inlined import Inlined
from pytensor_onnx.passes.near_identities import NEUTRAL, near_identity_form
from pytensor_onnx.passes.padded_pools import padded_pool_form
from pytensor_onnx.passes.range_indices import range_form
from pytensor_onnx.passes.rewriting import Form, store_constants
from pytensor_onnx.passes.scaled_products import product_form
from pytensor_onnx.scope import ModelScope
from pytensor_onnx.targets import Profile

Rule = Callable[[ir.Node, Inlined], Form | None]


def keep_apart(model: ir.Model, scope: ModelScope, profile: Profile) -> list[str]:
    """Give nodes that the runtime's optimizer would spoil forms that it leaves alone.

    Parameters
    ----------
    model
        Model to change in place, with its functions and the graphs within nodes. It is the last
        thing to be done to it: our own passes do not know the forms.
    scope
        Names and constants of the model.
    profile
        What is known of the runtime.

    Returns
    -------
    list of str
        What was changed, one line for each kind of change.
    """
    rules = _rules(profile)
    if not rules:
        return []
    inlined = Inlined(model)
    changes: Counter[str] = Counter()

    def form_of(node: ir.Node) -> Form | None:
        rule, change = rules.get(node.op_type, (None, "")) if not node.domain else (None, "")
        form = None if rule is None else rule(node, inlined)
        if form is not None:
            changes[change] += 1
        return form

    if inlined.replace(scope, form_of):
        store_constants(model.graph, scope)
    return [f"{change} ({n} times)" if n > 1 else change for change, n in changes.items()]


def _rules(profile: Profile) -> dict[str, tuple[Rule, str]]:
    """Return the rules that a runtime needs, by the operator whose nodes they look at."""
    rules: dict[str, tuple[Rule, str]] = {}
    if profile.range_indices_become_slice:
        rules["Gather"] = range_form, "Gather by a Range kept from becoming a Slice"
    if profile.fuses_products:
        rules["MatMul"] = product_form, "MatMul kept apart from what is fused with it"
    if profile.pools_take_in_pads:
        rules["MaxPool"] = padded_pool_form, "MaxPool kept apart from the Pad before it"
    if profile.drops_near_identities:
        for op_type, neutral in NEUTRAL.items():
            change = f"{op_type} of a constant that float32 rounds to {neutral} kept"
            rules[op_type] = near_identity_form, change
    return rules
