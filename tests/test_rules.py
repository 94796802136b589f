"""The ledger of rules."""

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Variable
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph

from pytensor_onnx import export_onnx, pipeline  # noqa: F401  (declares the passes)
from pytensor_onnx.rewriting.query.registration import ONNX_QUERY, with_included
from pytensor_onnx.rules import Rule, declare, ledger, recorded, without
from scripts.make_rules import TARGET, page
from tests.conftest import REWRITTEN, compare_onnx_and_py, op_types
from tests.exclusion_examples import EXCLUSIONS
from tests.guard_examples import ENDLESS, GUARDS, UNCHANGED
from tests.rule_examples import EXAMPLES


def test_the_page_of_rules_is_that_of_the_ledger():
    assert TARGET.read_text(encoding="utf-8") == page()


def test_rules_have_one_name_each_and_known_purposes():
    rule = next(iter(ledger().values()))
    with pytest.raises(ValueError, match="two rules of the name"):
        declare(rule)
    with pytest.raises(ValueError, match="'haste' is none of correctness"):
        declare(Rule("new", "pass", "products", "haste", "x = x"))


def test_a_rule_for_speed_or_size_says_where_its_gain_was_measured():
    rules = [rule for rule in ledger().values() if rule.purpose in ("speed", "size")]
    assert not [rule.name for rule in rules if not rule.measured]


def test_a_rule_that_is_off_leaves_graphs_alone():
    x = pt.matrix("x")
    with recorded() as changes:
        fused = export_onnx([x], x @ x.T + 1, verify=False)
    assert changes["fuse_gemm"] == 1
    with without("fuse_gemm"), recorded() as changes:
        plain = export_onnx([x], x @ x.T + 1, verify=False)
    assert not changes["fuse_gemm"]
    assert "Gemm" in op_types(fused)
    assert "Gemm" not in op_types(plain)


def test_an_exclusion_that_is_off_lets_the_rewrite_of_pytensor_run():
    x = pt.vector("x")
    y = pt.sign(1 / x)
    assert pytensor.function([x], y, mode="ONNX")([0.0]) == 1
    with without("local_sign_div"):
        assert pytensor.function([x], y, mode="ONNX")([0.0]) == 0
        assert export_onnx([x], y, verify=False)(np.zeros(1)) == 0


def test_only_known_rules_can_be_off():
    with pytest.raises(KeyError, match="no_rule"), without("no_rule"):
        pass


@pytest.mark.few(54)
@pytest.mark.in_mode
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_rule_changes_its_example_and_no_values(name):
    inputs, outputs, values = EXAMPLES[name].fires()
    with recorded() as changes:
        compare_onnx_and_py(inputs, outputs, values, rtol=1e-5, atol=1e-6, reference=REWRITTEN)
    assert changes[name.split(":")[0]]


@pytest.mark.few(78)
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_rule_leaves_a_similar_graph_alone(name):
    inputs, outputs, _ = EXAMPLES[name].leaves()
    with recorded() as changes:
        pytensor.function(inputs, outputs, mode="ONNX", on_unused_input="ignore")
    assert not changes[name.split(":")[0]]


@pytest.mark.in_mode
@pytest.mark.parametrize("name", GUARDS)
def test_a_guard_keeps_the_values_that_the_rewrite_of_pytensor_changes(name):
    inputs, outputs, values = GUARDS[name]()
    with recorded() as refused:
        compare_onnx_and_py(inputs, outputs, values)
    assert refused[f"guarded_{name}"]
    if name in ENDLESS:
        return
    inputs, outputs, values = GUARDS[name]()
    with without(f"guarded_{name}"):
        if name in UNCHANGED:
            compare_onnx_and_py(inputs, outputs, values)
        else:
            with pytest.raises(Exception):  # noqa: B017, PT011
                compare_onnx_and_py(inputs, outputs, values)


def test_almost_every_guard_has_an_example():
    guards = {rule.name for rule in ledger().values() if rule.kind == "guard"}
    # Other rewrites find the graphs of their conditions first.
    others = {f"guarded_local_{name}" for name in ("0_dot_x", "mul_specialize")}
    # Their graphs are errors: tests/dispatch/registry/test_operand_sizes.py.
    others |= {f"guarded_local_{name}" for name in ("add_remove_zeros", "elemwise_alloc")}
    assert guards - others == {f"guarded_{name}" for name in GUARDS}


class Reasons(Feature):
    """Count the changes of a graph by the rewrites that make them."""

    def __init__(self):
        self.found = Counter()

    def on_change_input(self, fgraph, node, i, old, new, reason=None):
        self.found[str(reason)] += 1


def changes_by(
    reason: str, inputs: list[Variable], outputs: object, included: Iterable[str]
) -> int:
    """Return how often PyTensor changes a graph for a reason, with excluded rewrites included."""
    reasons = Reasons()
    results = outputs if isinstance(outputs, list) else [outputs]
    fgraph = FunctionGraph(inputs, results, clone=True, features=[reasons])
    optdb.query(with_included(ONNX_QUERY, included)).rewrite(fgraph)
    return sum(count for name, count in reasons.found.items() if reason in name)


@pytest.mark.parametrize("name", EXCLUSIONS)
def test_an_exclusion_keeps_the_rewrite_of_pytensor_from_its_example(name):
    example = EXCLUSIONS[name]
    inputs, outputs, _ = example.graph()
    with ExitStack() as stack:
        if example.instead:
            stack.enter_context(without(example.instead))
        kept, changed = (
            changes_by(example.reason, inputs, outputs, included) for included in ([], [name])
        )
    assert kept < changed


def test_every_exclusion_has_an_example():
    exclusions = {rule.name for rule in ledger().values() if rule.kind == "exclusion"}
    assert exclusions == {*EXCLUSIONS, "topo_constant_folding"}


def test_every_rewrite_and_pass_has_an_example():
    rules = {rule.name for rule in ledger().values() if rule.kind in ("rewrite", "pass")}
    # Passes on request and for another target have their own tests.
    others = {"find_sizes", "fold_constants", "inline_functions", "lower_opset", "narrow_indices"}
    assert rules - others <= {name.split(":")[0] for name in EXAMPLES}
    assert len(rules) <= 81
