"""A Cluster repeats what its infrastructure warns about, for as long as that lasts."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Cluster, ContractRef, Machine
from homeport.api.meta import ObjectMeta, Unstructured
from homeport.core.cluster.observed import Descendants, Observed
from homeport.core.cluster.status import report
from homeport.core.machine.observed import Connection
from homeport.core.related import Related
from homeport.machinery.condition import find
from homeport.runtime.clock import parse_time

SINCE = "2026-01-01T00:00:00Z"
REF = ContractRef(api_group="infrastructure.cluster.x-k8s.io", kind="NutanixCluster", name="harbour")


def said(kind: str, status: str, reason: str = "x", message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": SINCE}


def reported(*conditions: dict[str, str], **seen: Any) -> Cluster:
    cluster = Cluster(metadata=ObjectMeta(name="harbour", namespace="default"))
    cluster.spec.infrastructure_ref = REF
    cluster.status.initialization.infrastructure_provisioned = True
    body: dict[str, Any] = {"kind": "NutanixCluster", "metadata": {"name": "harbour", "namespace": "default"}}
    infra = Unstructured({**body, "status": {"conditions": list(conditions)}})
    report(cluster, Observed(infrastructure=Related(REF, object=infra), **seen), parse_time(SINCE) + 60)
    return cluster


@pytest.mark.parametrize(
    ("kind", "reason"), [("NetworksDisjoint", "NetworksOverlap"), ("ControlPlaneEndpointFree", "EndpointOutsideSubnet")]
)
def test_a_warning_of_the_infrastructure_is_repeated(kind: str, reason: str) -> None:
    found = find(reported(said("Ready", "True"), said(kind, "False", reason, "it overlaps")).status.conditions, kind)
    assert found is not None
    assert (found["status"], found["reason"]) == ("False", reason)
    assert found["message"] == "NutanixCluster harbour: it overlaps"


@pytest.mark.parametrize("warned", [True, False])
def test_what_the_infrastructure_warned_about_explains_why_nothing_answers(warned: bool) -> None:
    text = "spec.image: 'ubuntu-v1.29.0' contains Kubernetes v1.29.0, but KubeadmControlPlane harbour has v1.31.0"
    meta = ObjectMeta(name="m", namespace="default", labels={"cluster.x-k8s.io/control-plane": ""})
    machine = Machine(metadata=meta)
    machine.status.conditions = [said("InfrastructureReady", "True")]
    found = find(
        reported(
            said("Ready", "True"),
            said("ReferencesResolved", "False" if warned else "True", "ImageVersionMismatch", text if warned else ""),
            descendants=Descendants([machine]),
            connection=Connection(why="nothing answers at 10.0.0.1:6443"),
        ).status.conditions,
        "Available",
    )
    assert found is not None
    assert found["message"].startswith(
        f"NutanixCluster harbour: {text}\n"
        if warned
        else "control plane machine m: it runs, but its API server can't be reached: nothing answers at 10.0.0.1:6443"
    )


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
