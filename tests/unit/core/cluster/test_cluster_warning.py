"""A Cluster repeats what its infrastructure warns about, for as long as that lasts."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Cluster, ContractRef
from homeport.api.meta import ObjectMeta, Unstructured
from homeport.core.cluster.observed import Observed
from homeport.core.cluster.status import report
from homeport.core.related import Related
from homeport.machinery.condition import find
from homeport.runtime.clock import parse_time

SINCE = "2026-01-01T00:00:00Z"
REF = ContractRef(api_group="infrastructure.cluster.x-k8s.io", kind="NutanixCluster", name="harbour")


def said(kind: str, status: str, reason: str = "x", message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": SINCE}


def reported(*conditions: dict[str, str]) -> Cluster:
    cluster = Cluster(metadata=ObjectMeta(name="harbour", namespace="default"))
    cluster.spec.infrastructure_ref = REF
    cluster.status.initialization.infrastructure_provisioned = True
    body: dict[str, Any] = {"kind": "NutanixCluster", "metadata": {"name": "harbour", "namespace": "default"}}
    infra = Unstructured({**body, "status": {"conditions": list(conditions)}})
    report(cluster, Observed(infrastructure=Related(REF, object=infra)), parse_time(SINCE) + 60)
    return cluster


@pytest.mark.parametrize(
    ("kind", "reason"), [("NetworksDisjoint", "NetworksOverlap"), ("ControlPlaneEndpointFree", "EndpointOutsideSubnet")]
)
def test_a_warning_of_the_infrastructure_is_repeated(kind: str, reason: str) -> None:
    found = find(reported(said("Ready", "True"), said(kind, "False", reason, "it overlaps")).status.conditions, kind)
    assert found is not None
    assert (found["status"], found["reason"]) == ("False", reason)
    assert found["message"] == "NutanixCluster harbour: it overlaps"


@pytest.mark.parametrize(
    "conditions",
    [
        (said("Ready", "True"), said("NetworksDisjoint", "True")),
        (said("Ready", "True"),),
        # InfrastructureReady says it.
        (said("Ready", "False", "NetworksOverlap", "x"), said("NetworksDisjoint", "False", "NetworksOverlap", "x")),
    ],
    ids=["nothing is wrong", "not reported", "it blocks"],
)
def test_nothing_is_repeated_otherwise(conditions: tuple[dict[str, str], ...]) -> None:
    assert find(reported(*conditions).status.conditions, "NetworksDisjoint") is None
