"""Defects of PyTensor: their reproductions, and the rules and names that wait for a repair."""

import re

import pytest

import pytensor_onnx.running.linker  # noqa: F401  (declares the rewrites)
from pytensor_onnx.compat import pytensor as compat
from pytensor_onnx.rules import Rule, ledger
from scripts.upstream import TEXTS, outcomes, verdict

REFERENCE = re.compile(r"docs/project/upstream\.md#([\w-]+)")


@pytest.mark.parametrize("anchor", TEXTS)
def test_a_defect_of_pytensor_is_still_there(anchor):
    results = list(outcomes(anchor))
    assert results
    for found, seen, expected in results:
        assert found != expected, f"PyTensor is right now: drop what waits for {anchor}"
        assert found == seen


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (["1", "2"], "there"),
        (["3", "3"], "fixed"),
        (["3", "2"], "fixed in 1 of 2 lines"),
        (["1", "4"], "there, and different"),
    ],
)
def test_a_repair_is_told_from_the_defect(found, expected):
    lines = [(found[0], "1", "3"), (found[1], "2", "3")]
    assert verdict(lines) == expected


def needs_an_issue(rule: Rule) -> bool:
    return rule.kind in ("guard", "exclusion") and rule.purpose == "correctness"


@pytest.mark.parametrize("name", [name for name, rule in ledger().items() if needs_an_issue(rule)])
def test_a_rule_for_correctness_names_the_defect_of_pytensor(name):
    found = REFERENCE.search(ledger()[name].measured)
    assert found
    assert f"`{name.removeprefix('guarded_')}`" in TEXTS[found[1]]


def test_a_private_name_of_pytensor_has_an_issue():
    assert compat.PRIVATE
    for name, anchor in compat.PRIVATE.items():
        assert f"`{name.rpartition('.')[2]}`" in TEXTS[anchor].replace(".", "`"), name


def test_each_section_has_a_rule_or_a_name_that_waits_for_it():
    of_rules = {anchor for rule in ledger().values() for anchor in REFERENCE.findall(rule.measured)}
    assert of_rules | set(compat.PRIVATE.values()) == set(TEXTS)
