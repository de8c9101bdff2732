"""Templates, variables, paths and states of Pods: the pure parts."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from homeport.api.meta import Unstructured
from homeport.builtin.workload.address import loopback_of, pod_loopback_of
from homeport.builtin.workload.material import expand, field_of
from homeport.builtin.workload.process import relocate
from homeport.builtin.workload.status import ContainerState, pod_phase
from homeport.runtime.workload.coroutine import CoroutineRunner, until_stopped
from homeport.runtime.workload.kind import DEPLOYMENT, REPLICA_SET
from homeport.runtime.workload.replicaset import surplus
from homeport.runtime.workload.runner import RUNNER_ANNOTATION, Runners
from homeport.runtime.workload.statefulset import ordinal
from homeport.runtime.workload.template import pod_of, same_template, share_of, short_hash
from homeport.sim.network.book import Network


def test_a_template_is_the_same_but_for_the_label_that_tells_versions_apart() -> None:
    one = {"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}
    other = {"metadata": {"creationTimestamp": None, "labels": {"a": "b", "pod-template-hash": "h"}}, "spec": {"x": 1}}
    assert same_template(one, other)
    assert not same_template(one, {**one, "spec": {"x": 2}})


def test_hashes_depend_on_content_and_salt_alone() -> None:
    assert short_hash({"a": 1, "b": 2}) == short_hash({"b": 2, "a": 1})
    assert short_hash({"a": 1}) != short_hash({"a": 1}, 1)
    assert len(short_hash({})) == 10


def test_pods_are_owned_by_what_made_them() -> None:
    owner = Unstructured(metadata={"name": "web", "namespace": "ns", "uid": "u"})
    pod = pod_of(owner, REPLICA_SET, {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}})
    assert pod["metadata"]["generateName"] == "web-"
    (ref,) = pod["metadata"]["ownerReferences"]
    assert (ref["apiVersion"], ref["kind"], ref["uid"], ref["controller"]) == ("apps/v1", "ReplicaSet", "u", True)
    assert DEPLOYMENT.kind != ref["kind"]


@pytest.mark.parametrize(
    ("value", "up", "share"),
    [("25%", True, 2), ("25%", False, 1), (3, True, 3), ("0%", True, 0), (None, False, 0), ("100%", False, 5)],
)
def test_shares_round_as_asked(value: str | int | None, up: bool, share: int) -> None:
    assert share_of(value, 5, up=up) == share


def test_variables_are_expanded_as_in_kubernetes() -> None:
    values = {"A": "1", "B.x": "2"}
    assert expand("$(A) $(B.x) $(C) $$(A) $A", values) == "1 2 $(C) $(A) $A"


def test_fields_of_the_pod_can_be_seen() -> None:
    pod = {
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "status": {"podIP": "127.0.0.9", "podIPs": [{"ip": "127.0.0.9"}]},
    }
    assert field_of(pod, "metadata.name") == "p"
    assert field_of(pod, "metadata.labels['a']") == "b"
    assert field_of(pod, "metadata.labels") == 'a="b"'
    assert field_of(pod, "status.podIPs") == "127.0.0.9"


def test_mount_paths_are_replaced_where_they_are_whole_steps() -> None:
    places = {"/data": Path("/tmp/x"), "/data/more": Path("/tmp/y")}
    assert relocate("--dir=/data/a", places) == "--dir=/tmp/x/a"
    assert relocate("/data/more/f:/data", places) == "/tmp/y/f:/tmp/x"
    assert relocate("/database /my/data", places) == "/database /my/data"


def test_ordinals() -> None:
    assert ordinal("web", "web-12") == 12
    assert ordinal("web", "web-a") is None
    assert ordinal("web", "web-2-3") is None


def _state(**state: object) -> ContainerState:
    return ContainerState("c", "i", "u", **state)  # type: ignore[arg-type]


def test_the_phase_follows_the_containers() -> None:
    running = _state(state={"running": {}}, started=True)
    waiting = _state()
    well = _state(state={"terminated": {"exitCode": 0}}, ended=True)
    badly = _state(state={"terminated": {"exitCode": 1}}, ended=True)
    crashing = _state(state={"waiting": {"reason": "CrashLoopBackOff"}}, restarts=1)
    assert pod_phase([], [waiting]) == "Pending"
    assert pod_phase([waiting], [waiting]) == "Pending"
    assert pod_phase([well], [running]) == "Running"
    assert pod_phase([], [crashing]) == "Running"
    assert pod_phase([], [well, running]) == "Running"
    assert pod_phase([], [well, well]) == "Succeeded"
    assert pod_phase([], [well, badly]) == "Failed"
    assert pod_phase([badly], [waiting]) == "Failed"


def _pod(name: str, *, node: str = "", phase: str = "Pending", ready: bool = False, made: str = "1") -> Unstructured:
    conditions = [{"type": "Ready", "status": "True"}] if ready else []
    return Unstructured(
        metadata={"name": name, "creationTimestamp": made},
        spec={"nodeName": node},
        status={"phase": phase, "conditions": conditions},
    )


def test_what_is_missed_least_goes_first() -> None:
    pods = [
        _pod("old", node="n", phase="Running", ready=True, made="1"),
        _pod("young", node="n", phase="Running", ready=True, made="2"),
        _pod("unready", node="n", phase="Running"),
        _pod("unplaced"),
    ]
    assert [p.name for p in surplus(pods, 3)] == ["unplaced", "unready", "young"]
    assert surplus(pods, -1) == []


def test_a_runner_is_found_by_image_test_or_name() -> None:
    runners = Runners()
    first, second, third = (CoroutineRunner(until_stopped) for _ in range(3))
    runners.register("api", first, images=["*/kube-apiserver:*"])
    runners.register("label", second, match=lambda pod, container: "x" in pod["metadata"].get("labels", {}))
    runners.register("named", third)
    api = {"name": "c", "image": "registry.k8s.io/kube-apiserver:v1"}
    assert runners.find({"metadata": {}}, api) is first
    assert runners.find({"metadata": {"labels": {"x": ""}}}, {"image": "y"}) is second
    assert runners.find({"metadata": {"annotations": {RUNNER_ANNOTATION: "named"}}}, api) is third
    assert runners.find({"metadata": {}}, {"image": "y"}) is None
    unknown = {"metadata": {"annotations": {RUNNER_ANNOTATION: "nobody"}}, "spec": {"containers": [api]}}
    assert "no runner 'nobody'" in runners.missing(unknown)
    with pytest.raises(ValueError, match="already"):
        runners.register("api", first)


def test_pods_services_and_simulated_networks_never_share_a_loopback_address() -> None:
    network = Network()
    for number in range(200):
        uid = f"uid-{number}"
        assert ip_address(pod_loopback_of(uid, ())) in ip_network("127.128.0.0/10")
        assert ip_address(network.loopback()) in ip_network("127.64.0.0/10")
        assert 16 <= ip_address(loopback_of(uid, ())).packed[1] < 48
    first = pod_loopback_of("uid", ())
    assert pod_loopback_of("uid", ()) == first
    assert pod_loopback_of("uid", {first}) != first
