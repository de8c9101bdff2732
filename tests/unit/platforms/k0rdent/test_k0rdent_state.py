"""Conditions of ClusterDeployments, chains, trust bundles and the dry run's diff, from plain values."""

from __future__ import annotations

import base64
import datetime
import re
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.cluster.v1beta2.cluster import WorkersStatus
from homeport.api.k0rdent.v1beta1 import ClusterTemplateChain
from homeport.api.k0rdent.v1beta1.chain import AvailableUpgrade, ChainSpec, SupportedTemplate
from homeport.platforms.k0rdent.deployment.access import bundle_of
from homeport.platforms.k0rdent.deployment.render import diff
from homeport.platforms.k0rdent.deployment.state import (
    PATIENCE_SECONDS,
    causes,
    failed,
    good,
    nodes_of,
    progressing,
    ready_of,
    summary_of,
    unknown,
)
from homeport.platforms.k0rdent.management.chain import chain_error, upgrades_of
from homeport.runtime.clock import rfc3339

PLACEHOLDER = "-----BEGIN CERTIFICATE-----\n# Your custom CA certificate here\n-----END CERTIFICATE-----\n"


def test_ready_names_errors_first_then_what_goes_on() -> None:
    assert ready_of([good("A"), good("B")]).message == "Object is ready"
    both = ready_of([good("A"), progressing("B", "waits"), failed("C", "is wrong")])
    assert (both.status, both.reason, both.message) == ("False", "Failed", "is wrong")
    waits = ready_of([good("A"), progressing("B", "waits"), unknown("C")])
    assert (waits.status, waits.reason, waits.message) == ("False", "Progressing", "waits")
    assert ready_of([unknown("C")]).reason == "Progressing"


def cluster(at: float, **conditions: str) -> Cluster:
    made = Cluster()
    made.status.conditions = [
        {
            "type": name,
            "status": "False" if message else "True",
            "reason": "Because",
            "message": message,
            "lastTransitionTime": rfc3339(at),
        }
        for name, message in conditions.items()
    ]
    return made


def test_the_summary_has_what_is_not_ready_and_becomes_an_error_after_half_an_hour() -> None:
    found = cluster(1000.0, InfrastructureReady="", WorkersAvailable="* machine a:\n  * image x not found", Other="y")
    fresh = summary_of(found, 1000.0)
    assert fresh.message == "WorkersAvailable: machine a: image x not found"
    assert (fresh.reason, fresh.error) == ("Progressing", False)
    late = summary_of(found, 1001.0 + PATIENCE_SECONDS)
    assert (late.reason, late.error) == ("Failed", True)


def test_the_summary_is_good_only_for_what_the_cluster_has_seen_and_finished() -> None:
    found = cluster(0.0, InfrastructureReady="", Available="", TopologyReconciled="")
    for each in found.status.conditions:
        each["observedGeneration"] = 2
    found.metadata.generation = found.status.observed_generation = 2
    found.status.workers = WorkersStatus(replicas=2, ready_replicas=2, up_to_date_replicas=2)
    assert summary_of(found, 1e6, 2).good
    assert "3 workers desired: 2 exist, 2 are ready, 2 are up to date" in summary_of(found, 1e6, 3).message
    found.metadata.generation = 3
    assert summary_of(found, 1e6, 2).message == "the last change is being carried out"
    assert summary_of(Cluster(), 1e6).message == "the Cluster has not reported yet"


def chain(**upgrades: list[str]) -> ClusterTemplateChain:
    made = ClusterTemplateChain()
    made.spec = ChainSpec(
        supported_templates=[
            SupportedTemplate(name=name, available_upgrades=[AvailableUpgrade(name=each) for each in to])
            for name, to in upgrades.items()
        ]
    )
    return made


def test_chains_must_list_what_they_lead_to() -> None:
    assert chain_error(chain(a=["b"], b=[]).spec) == ""
    assert '"b", which a leads to, is not in' in chain_error(chain(a=["b"]).spec)
    assert "leads to itself" in chain_error(chain(a=["a"]).spec)
    mixed = chain(a=["b", "c"], b=[], c=[])
    mixed.spec.supported_templates[0].available_upgrades[0].version = "1.0.0"
    assert "some upgrades have a version" in chain_error(mixed.spec)


def test_upgrades_come_from_all_valid_chains() -> None:
    assert upgrades_of("a", [chain(a=["b"], b=[]), chain(a=["c"], c=["b"], b=[]), chain(a=["d"])]) == ["b", "c"]


@pytest.fixture(scope="module")
def pem() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ca")])
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=365))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM).decode()


def test_a_bundle_is_found_under_every_usual_key(pem: str) -> None:
    assert bundle_of({"data": {"ca.crt": pem, "other.crt": "x"}}) == pem
    assert bundle_of({"data": {"ca-bundle.crt": pem, "README": "x"}}) == pem
    assert bundle_of({"binaryData": {"ca.crt": base64.b64encode(pem.encode()).decode()}}) == pem


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"ca-bundle.crt": PLACEHOLDER}, "key ca-bundle.crt does not hold a valid certificate in PEM format"),
        ({"ca.crt": ""}, "does not hold a valid certificate"),
        ({"bundle.pem": "x"}, "expected the key ca.crt, or one key that ends in .crt; keys are bundle.pem"),
        ({"a.crt": "x", "b.crt": "y"}, "keys are a.crt, b.crt"),
        ({}, "keys are none"),
    ],
)
def test_a_bundle_that_can_not_be_used_says_what_to_do(data: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        bundle_of({"data": data})


def body(replicas: int, **more: Any) -> dict[str, Any]:
    meta = {"name": "demo", "namespace": "kcm-system"}
    return {"kind": "Cluster", "metadata": {**meta, **more}, "spec": {"replicas": replicas}}


def test_the_diff_shows_what_would_change_and_not_what_others_wrote() -> None:
    before = {**body(1, uid="x", resourceVersion="7"), "status": {"phase": "Provisioned"}}
    shown = diff(before, body(2))
    assert "--- Cluster kcm-system/demo (now)" in shown
    assert [line for line in shown.splitlines() if line[:1] in "+-" and line[:3] not in ("---", "+++")] == [
        "-  replicas: 1",
        "+  replicas: 2",
    ]
    assert diff(before, body(1)) == ""
    assert "+kind: Cluster" in diff(None, body(1))


def test_a_cause_is_told_once_without_what_follows_from_it() -> None:
    machine = "Machine a: InfrastructureReady: NutanixMachine a: image not found"
    found = [
        {"type": "ControlPlaneInitialized", "status": "False", "message": "K0sControlPlane x is not initialized yet"},
        {"type": "ControlPlaneAvailable", "status": "False", "message": f"K0sControlPlane x:\n* {machine}"},
        {"type": "ControlPlaneMachinesReady", "status": "False", "message": f"* {machine}"},
        {"type": "WorkersAvailable", "status": "False", "message": "waiting for the control plane"},
        {"type": "RemoteConnectionProbe", "status": "False", "message": "no connection"},
    ]
    assert causes(found) == [f"ControlPlaneAvailable: K0sControlPlane x: {machine}"]
    assert causes(found[-1:]) == ["RemoteConnectionProbe: no connection"]
    assert causes(found[3:4]) == ["WorkersAvailable: waiting for the control plane"]
    waits = "NodeHealthy: the machine has not joined yet"
    workers = [
        {
            "type": "WorkersAvailable",
            "status": "False",
            "message": f"* MachineDeployment m: 0 of 1; Machine a: * {waits}",
        },
        {"type": "WorkerMachinesReady", "status": "False", "message": f"* Machine a: {waits}"},
    ]
    assert causes(workers) == [f"WorkersAvailable: MachineDeployment m: 0 of 1; Machine a: {waits}"]
    assert causes([{"type": "InfrastructureReady", "status": "False", "message": "no"}, *workers]) == [
        "InfrastructureReady: no"
    ]


def waits(kind: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": "False", "message": message}


def test_a_cause_is_told_once_for_all_that_it_holds_up() -> None:
    wrong = "spec.template.spec.image: image 'x' not found; did you mean 'y'?"
    found = [
        waits(
            "InfrastructureReady",
            f"NutanixCluster c: NutanixMachineTemplate c-cp: {wrong}; NutanixMachineTemplate c-md: {wrong}",
        ),
        waits(
            "ControlPlaneAvailable", "K0sControlPlane c: waiting for the infrastructure of Cluster c to be provisioned"
        ),
    ]
    assert causes(found) == [f"InfrastructureReady: NutanixCluster c: NutanixMachineTemplate c-cp: {wrong}"]
    assert causes(found[1:]) == [f"ControlPlaneAvailable: {found[1]['message']}"]
    cluster_waits = progressing("CAPIClusterSummary", "; ".join(causes(found)))
    services = progressing("ServicesInReadyState", "0/1: csi: the infrastructure of the cluster is not provisioned yet")
    assert ready_of([cluster_waits, services]).message == cluster_waits.message
    assert ready_of([good("CAPIClusterSummary"), services]).message == services.message


def test_of_a_machine_the_first_stage_that_is_not_reached_is_told() -> None:
    text = (
        "* MachineDeployment m:\n  * 0 of 2 replicas are available; Machine a: * BootstrapConfigReady: no token\n"
        "  * InfrastructureReady: Machine a has no bootstrap data yet\n  * NodeHealthy: no connection\n"
        "  * Machine b: * InfrastructureReady: no memory\n  * NodeHealthy: no Node"
    )
    (said,) = causes([waits("WorkersAvailable", text)])
    assert said == (
        "WorkersAvailable: MachineDeployment m: 0 of 2 replicas are available; Machine a: BootstrapConfigReady: no token; "
        "Machine b: InfrastructureReady: no memory"
    )


def test_nodes_that_no_pod_can_use_are_told_with_the_cure() -> None:
    taints = [{"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}]
    nodes = [{"metadata": {"name": f"n{each}"}, "spec": {"taints": taints}} for each in range(4)]
    assert nodes_of([{"metadata": {"name": "a"}, "spec": {}}]) == ""
    assert "4 Nodes have the taint" in nodes_of(nodes)
    assert "(n0, n1, n2 and 1 more)" in nodes_of(nodes)
