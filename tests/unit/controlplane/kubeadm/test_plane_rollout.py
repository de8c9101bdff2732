from __future__ import annotations

from typing import Any

import pytest

from homeport.controlplane.kubeadm import desired
from homeport.controlplane.kubeadm.plan.rollout import next_moment, outdated, same_config
from homeport.runtime.clock import parse_time
from unit.controlplane.kubeadm.sample_kcp import make_config, make_kcp, make_machine

NOW = parse_time("2026-06-01T00:00:00Z")
BASE: dict[str, Any] = {
    "clusterConfiguration": {"apiServer": {"extraArgs": [{"name": "v", "value": "2"}]}},
    "initConfiguration": {"nodeRegistration": {"name": "x"}},
    "joinConfiguration": {"nodeRegistration": {"name": "x"}},
    "preKubeadmCommands": ["hostname"],
}


def infra(name: str = "small", kind: str = "GenericMachineTemplate") -> dict[str, Any]:
    annotations = {
        "cluster.x-k8s.io/cloned-from-name": name,
        "cluster.x-k8s.io/cloned-from-groupkind": f"{kind}.infrastructure.example.com",
    }
    return {"kind": "GenericMachine", "metadata": {"annotations": annotations}}


@pytest.mark.parametrize("join", [True, False])
def test_a_machine_as_it_was_made_is_up_to_date(join: bool) -> None:
    kcp = make_kcp(kubeadmConfigSpec=BASE)
    assert outdated(kcp, make_machine(kcp), make_config(kcp, join=join), infra(), NOW) == ()


CHANGES: list[tuple[str, dict[str, Any], str]] = [
    ("version", {"version": "v1.30.3"}, "Version v1.30.2, v1.30.3 is desired"),
    ("build", {"version": "v1.30.2+build.1"}, "v1.30.2+build.1"),
    ("arguments", {"kubeadmConfigSpec": {**BASE, "clusterConfiguration": {"apiServer": {}}}}, "KubeadmConfig"),
    ("commands", {"kubeadmConfigSpec": {**BASE, "preKubeadmCommands": ["id"]}}, "KubeadmConfig"),
    ("after", {"kubeadmConfigSpec": BASE, "rollout": {"after": "2026-05-01T00:00:00Z"}}, "rollout.after"),
]


@pytest.mark.parametrize(("change", "said"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_what_can_not_be_changed_in_place_needs_a_new_machine(change: dict[str, Any], said: str) -> None:
    old = make_kcp(kubeadmConfigSpec=BASE)
    new = make_kcp(**{"kubeadmConfigSpec": BASE, **change})
    found = outdated(new, make_machine(old), make_config(old, join=True), infra(), NOW)
    assert len(found) == 1
    assert said in found[0]


def test_another_template_needs_a_new_machine() -> None:
    kcp = make_kcp()
    machine = make_machine(kcp)
    assert "template large" in outdated(kcp, machine, None, infra("large"), NOW)[0]
    assert outdated(kcp, machine, None, {"metadata": {}}, NOW) == ()  # it was not made from one


IN_PLACE: list[dict[str, Any]] = [
    {"clusterConfiguration": {**BASE["clusterConfiguration"], "dns": {"imageTag": "v1.11.3"}}},
    {"joinConfiguration": {**BASE["joinConfiguration"], "discovery": {"tlsBootstrapToken": "abcdef.0123456789abcdef"}}},
    {
        "joinConfiguration": {
            **BASE["joinConfiguration"],
            "timeouts": {"controlPlaneComponentHealthCheckSeconds": 300},
        }
    },
    {"format": "cloud-config"},
    {
        "joinConfiguration": {"nodeRegistration": {"name": "x", "imagePullPolicy": "IfNotPresent"}},
    },
]


@pytest.mark.parametrize("change", IN_PLACE)
def test_differences_that_mean_nothing_replace_nothing(change: dict[str, Any]) -> None:
    old = make_kcp(kubeadmConfigSpec=BASE)
    assert same_config(make_kcp(kubeadmConfigSpec={**BASE, **change}), make_config(old, join=True))


def test_the_first_machine_is_compared_by_what_it_was_made_from() -> None:
    """initConfiguration and joinConfiguration need not say the same."""
    spec = {**BASE, "initConfiguration": {"nodeRegistration": {"name": "first"}}}
    kcp = make_kcp(kubeadmConfigSpec=spec)
    first = make_config(kcp, join=False)
    assert same_config(kcp, first)
    assert not same_config(make_kcp(kubeadmConfigSpec={**spec, "files": [{"path": "/a", "content": "b"}]}), first)
    same = make_kcp(kubeadmConfigSpec={**BASE, "joinConfiguration": {**BASE["joinConfiguration"], "caCertPath": "/x"}})
    assert same_config(same, make_config(make_kcp(kubeadmConfigSpec=BASE), join=False))


def test_no_taints_are_not_the_usual_taints() -> None:
    bare: dict[str, Any] = {"joinConfiguration": {"nodeRegistration": {"taints": []}}}
    assert not same_config(make_kcp(kubeadmConfigSpec=bare), make_config(make_kcp(), join=True))


def test_certificates_are_renewed_in_time() -> None:
    kcp = make_kcp(rollout={"before": {"certificatesExpiryDays": 30}})
    machine = make_machine(kcp)
    machine.status.certificates_expiry_date = "2026-06-20T00:00:00Z"
    assert "expire" in outdated(kcp, machine, None, None, NOW)[0]
    machine.status.certificates_expiry_date = "2026-08-01T00:00:00Z"
    assert outdated(kcp, machine, None, None, NOW) == ()
    assert next_moment(kcp, [machine], NOW) == parse_time("2026-07-02T00:00:00Z") - NOW


def test_a_rollout_in_the_future_is_waited_for() -> None:
    kcp = make_kcp(rollout={"after": "2026-06-01T01:00:00Z"})
    assert outdated(kcp, make_machine(kcp), None, None, NOW) == ()
    assert next_moment(kcp, [], NOW) == 3600.0


def test_kubelets_talk_to_their_own_api_server_where_kubeadm_knows_how() -> None:
    for version, expected in (("v1.30.2", None), ("v1.31.0", True), ("v1.35.9", True), ("v1.36.0", None)):
        spec = desired.kubeadm_spec(make_kcp(version=version).spec.kubeadm_config_spec, version, join=True)
        gates = (spec.get("clusterConfiguration") or {}).get("featureGates") or {}
        assert gates.get("ControlPlaneKubeletLocalMode") is expected
    own = {"clusterConfiguration": {"featureGates": {"ControlPlaneKubeletLocalMode": False}}}
    spec = desired.kubeadm_spec(make_kcp(kubeadmConfigSpec=own).spec.kubeadm_config_spec, "v1.31.0", join=True)
    assert spec["clusterConfiguration"]["featureGates"]["ControlPlaneKubeletLocalMode"] is False


def test_metadata_timeouts_and_gates_change_in_place() -> None:
    old = make_kcp()
    machine = make_machine(old)
    assert desired.machine_patch(old, "one", machine) == {}
    template = {
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
        "spec": {
            "infrastructureRef": {
                "apiGroup": "infrastructure.example.com",
                "kind": "GenericMachineTemplate",
                "name": "small",
            },
            "deletion": {"nodeDrainTimeoutSeconds": 60},
            "readinessGates": [{"conditionType": "Warm"}],
        },
    }
    patch = desired.machine_patch(make_kcp(machineTemplate=template), "one", machine)
    assert patch["metadata"] == {"labels": {"team": "a"}, "annotations": {"note": "b"}}
    assert patch["spec"]["deletion"] == {"nodeDrainTimeoutSeconds": 60}
    assert [gate["conditionType"] for gate in patch["spec"]["readinessGates"]] == [
        *desired.GATES,
        *desired.ETCD_GATES,
        "Warm",
    ]
