from __future__ import annotations

from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Machine, MachineStatus
from homeport.api.meta import ObjectMeta, Unstructured
from homeport.capi.name import CONTROL_PLANE_LABEL
from homeport.capi.object.summary import (
    AVAILABLE,
    MESSAGE_LIMIT,
    READY,
    Priority,
    Reasons,
    aggregate,
    judge,
    mirror,
    ordered,
    store,
    summary,
)

NOW = "2026-01-01T00:00:00Z"


def condition(kind: str, status: str, message: str = "", reason: str = "R") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


@pytest.mark.parametrize(
    ("conditions", "status", "reason", "message"),
    [
        ([condition("A", "True"), condition("B", "True")], "True", "Ready", ""),
        ([condition("A", "True", "fine"), condition("B", "True")], "True", "Ready", "* A: fine"),
        ([condition("A", "True", "fine"), condition("B", "False", "bad")], "False", "NotReady", "* B: bad"),
        ([condition("B", "False"), condition("A", "False", "worse")], "False", "NotReady", "* A: worse\n* B: R"),
        (
            [condition("A", "Unknown", "who knows"), condition("B", "False", "bad")],
            "False",
            "NotReady",
            "* A: who knows\n* B: bad",
        ),
        (
            [condition("A", "Unknown", "who knows"), condition("B", "True", "fine")],
            "Unknown",
            "ReadyUnknown",
            "* A: who knows",
        ),
        ([condition("A", "True")], "Unknown", "ReadyUnknown", "* B: B has not been reported yet"),
        (
            [condition("A", "False", "* x\n* y"), condition("B", "True")],
            "False",
            "NotReady",
            "* A:\n  * x\n  * y",
        ),
        (
            [condition("A", "False", "first\n* y"), condition("B", "True")],
            "False",
            "NotReady",
            "* A:\n  * first\n    * y",
        ),
    ],
)
def test_a_summary_says_the_worst(conditions: list[dict[str, Any]], status: str, reason: str, message: str) -> None:
    made = summary([*conditions, condition("Other", "False")], "Ready", ["A", "B"], reasons=READY)
    assert made == {"type": "Ready", "status": status, "reason": reason, "message": message}


def test_a_negative_condition_is_a_problem_when_true() -> None:
    conditions = [condition("Deleting", "True", "waits for the VM"), condition("A", "True")]
    made = summary(conditions, "Ready", ["Deleting", "A"], reasons=READY, negative=["Deleting"])
    assert (made["status"], made["message"]) == ("False", "* Deleting: waits for the VM")
    conditions[0]["status"] = "False"
    assert summary(conditions, "Ready", ["Deleting", "A"], reasons=READY, negative=["Deleting"])["status"] == "True"


def test_optional_ones_do_not_count_while_missing() -> None:
    assert summary([condition("A", "True")], "Ready", ["A", "B"], reasons=READY, optional=["B"])["status"] == "True"
    with pytest.raises(ValueError, match="nothing to make Ready of"):
        summary([], "Ready", ["B"], reasons=READY, optional=["B"])


def test_a_condition_can_be_judged_and_worded_otherwise() -> None:
    conditions = [condition("A", "False", "long story"), condition("B", "True")]
    made = summary(conditions, "Ready", ["A", "B"], reasons=READY, override={"A": {"message": "short"}})
    assert made["message"] == "* A: short"
    lenient = summary(conditions, "Ready", ["A", "B"], reasons=READY, priority=lambda c: Priority.INFO)
    assert lenient["status"] == "True"


def test_a_message_stays_readable() -> None:
    made = summary([condition("A", "False", "x" * 20000)], "Ready", ["A"], reasons=READY)
    assert len(made["message"]) <= MESSAGE_LIMIT
    assert made["message"].endswith(" ...")


def test_priorities() -> None:
    assert [judge("N")(condition("N", s)) for s in ("True", "False", "Unknown")] == [0, 2, 1]
    assert [judge()(condition("P", s)) for s in ("True", "False", "Unknown")] == [2, 0, 1]


# -- aggregate -------------------------------------------------------------------------------------------------------


def machine(name: str, status: str, message: str = "", *, control_plane: bool = False) -> Machine:
    labels = {CONTROL_PLANE_LABEL: ""} if control_plane else {}
    conditions = [condition("Ready", status, message)] if status else []
    return Machine(metadata=ObjectMeta(name=name, labels=labels), status=MachineStatus(conditions=conditions))


@pytest.mark.parametrize(
    ("machines", "status", "message"),
    [
        ([machine("a", "True"), machine("b", "True")], "True", ""),
        ([machine("a", "True", "fine"), machine("b", "True", "fine")], "True", "* Machines a, b: fine"),
        ([machine("a", "False", "bad"), machine("b", "True", "fine")], "False", "* Machine a: bad"),
        ([machine("b", "False", "bad"), machine("a", "False", "bad")], "False", "* Machines a, b: bad"),
        ([machine(n, "False", "bad") for n in "edcba"], "False", "* Machines a, b, c and 2 more: bad"),
        ([machine("a", "")], "Unknown", "* Machine a: Ready has not been reported yet"),
        ([machine("a", "False")], "False", "* Machine a: R"),
        (
            [machine("a", "Unknown", "dunno"), machine("b", "Unknown", "dunno"), machine("c", "False", "bad")],
            "False",
            "* Machine c: bad\n* Machines a, b: dunno",
        ),
        (
            [machine("a", "False", "x"), machine("z", "Unknown", "y", control_plane=True)],
            "False",
            "* Machine z: y\n* Machine a: x",
        ),
        (
            [*(machine(n, "False", n) for n in "abcd"), machine("u", "Unknown", "u"), machine("v", "Unknown", "v")],
            "False",
            "* Machine a: a\n* Machine b: b\n* Machine c: c\nand 1 more Machine with other problems\n"
            "and 2 more Machines with unknown state",
        ),
    ],
)
def test_an_aggregate_groups_what_is_the_same(machines: list[Machine], status: str, message: str) -> None:
    made = aggregate(machines, "Ready", "MachinesReady", reasons=READY)
    assert (made["type"], made["status"], made["message"]) == ("MachinesReady", status, message)


def test_an_aggregate_of_a_negative_condition_is_negative() -> None:
    reasons = Reasons("ScalingUp", "ScalingUpUnknown", "NotScalingUp")

    def of(*statuses: str) -> tuple[str, str]:
        objects = [
            Unstructured(
                {
                    "kind": "MachineDeployment",
                    "metadata": {"name": str(i)},
                    "status": {"conditions": [condition("ScalingUp", s)]},
                }
            )
            for i, s in enumerate(statuses)
        ]
        made = aggregate(objects, "ScalingUp", reasons=reasons, negative=True)
        return made["status"], made["reason"]

    assert of("False", "False") == ("False", "NotScalingUp")
    assert of("False", "True") == ("True", "ScalingUp")
    assert of("False", "Unknown") == ("Unknown", "ScalingUpUnknown")


def test_an_aggregate_of_nothing_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="no objects"):
        aggregate([], "Ready", reasons=AVAILABLE)


# -- mirror and store ------------------------------------------------------------------------------------------------


def test_a_mirror_keeps_the_time_of_the_change() -> None:
    source = {**condition("Ready", "False", "m"), "lastTransitionTime": NOW, "observedGeneration": 4}
    made = mirror(source, "InfrastructureReady")
    assert made == {**condition("InfrastructureReady", "False", "m"), "lastTransitionTime": NOW}


def test_a_mirror_of_nothing_is_the_fallback_or_unknown() -> None:
    assert mirror(None, "X", fallback=("True", "Ready", "m")) == condition("X", "True", "m", "Ready")
    made = mirror(None, "X")
    assert (made["status"], made["reason"]) == ("Unknown", "NotYetReported")


def test_what_is_stored_is_in_order_and_times_move_with_the_status() -> None:
    first = store(
        [], [condition(k, "True") for k in ("Deleting", "Zoo", "Ready", "Paused", "Available")], now=NOW, generation=1
    )
    assert [c["type"] for c in first] == ["Available", "Ready", "Zoo", "Paused", "Deleting"]
    assert all(c["lastTransitionTime"] == NOW and c["observedGeneration"] == 1 for c in first)
    later = store(
        first, [condition("Ready", "True", "new"), condition("Zoo", "False")], now="2026-02-01T00:00:00Z", generation=2
    )
    times = {c["type"]: c["lastTransitionTime"] for c in later}
    assert times["Ready"] == NOW
    assert times["Zoo"] == "2026-02-01T00:00:00Z"
    assert ordered(later) == later
