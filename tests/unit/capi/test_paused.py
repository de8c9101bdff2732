from __future__ import annotations

import pytest

from homeport.api.cluster.v1beta2 import Cluster, ClusterSpec
from homeport.api.meta import ObjectMeta, Unstructured
from homeport.capi.name import PAUSED
from homeport.capi.object.paused import is_paused, paused_condition

RUNNING = Cluster()
STOPPED = Cluster(spec=ClusterSpec(paused=True))
PLAIN = Unstructured({"metadata": {}})
ANNOTATED = Unstructured({"metadata": {"annotations": {PAUSED: "false"}}})


@pytest.mark.parametrize(
    ("cluster", "obj", "paused"),
    [
        (RUNNING, PLAIN, False),
        (None, PLAIN, False),
        (STOPPED, PLAIN, True),
        (RUNNING, ANNOTATED, True),
        (None, ANNOTATED, True),
        (Unstructured({"spec": {"paused": True}}), PLAIN, True),
        (RUNNING, Cluster(metadata=ObjectMeta(annotations={PAUSED: ""})), True),
    ],
)
def test_the_cluster_or_an_annotation_of_any_value_pauses(
    cluster: Cluster | Unstructured | None, obj: Cluster | Unstructured, paused: bool
) -> None:
    assert is_paused(cluster, obj) is paused


def test_the_condition_names_everything_that_has_to_be_undone() -> None:
    (found,) = paused_condition([], STOPPED, ANNOTATED, now="2026-01-01T00:00:00Z", generation=3)
    assert (found["type"], found["status"], found["reason"]) == ("Paused", "True", "Paused")
    assert "spec.paused" in found["message"]
    assert PAUSED in found["message"]
    (found,) = paused_condition([found], RUNNING, PLAIN, now="2026-01-01T00:00:01Z", generation=3)
    assert (found["status"], found["reason"], found["message"]) == ("False", "NotPaused", "")
