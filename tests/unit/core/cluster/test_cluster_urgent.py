"""Which changes of a Cluster's status are written at once."""

from __future__ import annotations

import pytest

from homeport.api.cluster.v1beta2 import Cluster
from homeport.core.cluster.scope import ClusterScope


def scope(**conditions: str) -> ClusterScope:
    found = Cluster()
    found.status.conditions = [{"type": kind, "status": status} for kind, status in conditions.items()]
    return ClusterScope(found)


@pytest.mark.parametrize("kind", ["RollingOut", "Remediating"])
@pytest.mark.parametrize(
    ("before", "after", "urgent"),
    [("False", "True", True), ("True", "False", True), ("Unknown", "False", False), ("Unknown", "True", True)],
)
def test_what_may_last_some_seconds_is_reported_when_it_begins_and_ends(
    kind: str, before: str, after: str, urgent: bool
) -> None:
    made = scope(**{kind: before})
    made.object.status.conditions = [{"type": kind, "status": after}]
    assert made.urgent is urgent


def test_wording_alone_is_not_urgent() -> None:
    made = scope(Available="False")
    made.object.status.conditions = [{"type": "Available", "status": "False", "message": "one more step is done"}]
    assert not made.urgent
