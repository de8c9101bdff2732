"""What is still to be applied, and what is written down about it."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.core.clusterresourceset.plan import (
    APPLY_ONCE,
    RECONCILE,
    Outcome,
    RecordedResource,
    Ref,
    is_due,
    recorded,
    with_outcomes,
    without_set,
)

CNI = Ref("ConfigMap", "cni")


def entry(applied: bool, digest: str = "one", when: str = "before") -> dict[str, Any]:
    return {"kind": "ConfigMap", "name": "cni", "hash": digest, "applied": applied, "lastAppliedTime": when}


def bound(name: str, *resources: dict[str, Any]) -> dict[str, Any]:
    return {"clusterResourceSetName": name, "resources": list(resources)}


@pytest.mark.parametrize(
    ("strategy", "known", "due"),
    [
        (APPLY_ONCE, None, True),
        (APPLY_ONCE, RecordedResource("one", applied=False), True),
        (APPLY_ONCE, RecordedResource("one", applied=True), False),
        (APPLY_ONCE, RecordedResource("other", applied=True), False),
        (RECONCILE, None, True),
        (RECONCILE, RecordedResource("one", applied=False), True),
        (RECONCILE, RecordedResource("one", applied=True), False),
        (RECONCILE, RecordedResource("other", applied=True), True),
    ],
)
def test_when_resources_are_applied_again(strategy: str, known: RecordedResource | None, due: bool) -> None:
    assert is_due(strategy, known, "one") is due


def test_outcomes_are_written_beside_those_of_other_sets_and_resources() -> None:
    other = {"kind": "Secret", "name": "s", "hash": "h", "applied": True, "lastAppliedTime": "before"}
    before = [bound("x", entry(True)), bound("a", other)]
    after = with_outcomes(before, "a", [Outcome(CNI, "one", True)], "now")
    assert after == [bound("x", entry(True)), bound("a", other, entry(True, "one", "now"))]
    assert before == [bound("x", entry(True)), bound("a", other)]


def test_a_first_set_makes_the_first_entry() -> None:
    assert with_outcomes([], "a", [Outcome(CNI, "one", False)], "now") == [bound("a", entry(False, "one", "now"))]


@pytest.mark.parametrize(
    ("outcome", "when"),
    [(Outcome(CNI, "one", False), "before"), (Outcome(CNI, "two", False), "now"), (Outcome(CNI, "one", True), "now")],
)
def test_what_fails_again_as_before_is_no_news(outcome: Outcome, when: str) -> None:
    (made,) = with_outcomes([bound("a", entry(False))], "a", [outcome], "now")
    assert made["resources"][0]["lastAppliedTime"] == when


def test_a_set_is_found_and_taken_out_by_its_name() -> None:
    bindings = [bound("a", entry(True)), bound("b")]
    assert recorded(bindings, "a") == {CNI: entry(True)}
    assert recorded(bindings, "c") == {}
    assert without_set(bindings, "a") == [bound("b")]
