"""What is stuck and what is under way, causes before consequences."""

from __future__ import annotations

import msgspec

from homeport.app.report.description import ClusterState, Finding, Machines, Unfinished
from homeport.app.report.progress import progress

SECRET = "Secret default/pier-prism, key credentials: is not valid JSON"
CLUSTER = Unfinished(
    "Cluster", "default/pier", "WaitingForInfrastructure", "waiting for NutanixCluster pier to be provisioned"
)
INFRA = Unfinished("NutanixCluster", "default/pier", "InvalidConfiguration", SECRET, wrong=True)
PLANE = Unfinished(
    "KubeadmControlPlane",
    "default/pier",
    "WaitingForClusterInfrastructureReady",
    "waiting for the infrastructure of Cluster pier to be provisioned",
)
WORKERS = Unfinished(
    "MachineDeployment", "default/pier-workers", "ScalingUpBlocked", "KubeadmControlPlane pier is not up yet"
)
PIER = ClusterState(
    "default",
    "pier",
    "NotAvailable",
    control_plane=Machines(0, 3),
    cause=f"NutanixCluster pier: {SECRET}",
    under_way=[
        "KubeadmControlPlane pier: from 0 to 3 replicas",
        "MachineDeployment pier-workers: from 0 to 2 replicas",
    ],
)


def test_the_cause_is_shown_once_with_all_that_wait_for_it() -> None:
    stuck, going = progress([WORKERS, PLANE, CLUSTER, INFRA], [PIER])
    waiting = ["Cluster pier", "KubeadmControlPlane pier", "MachineDeployment pier-workers"]
    assert stuck == [Finding("NutanixCluster", "default/pier", SECRET, waiting)]
    assert going == []


def test_a_warning_that_explains_why_nothing_answers_is_the_cause() -> None:
    """No controller waits for it: only the Cluster reports it."""
    mismatch = "spec.template.spec.image: 'ubuntu-v1.29.0' contains Kubernetes v1.29.0, but the Machine has v1.31.0"
    items = [
        msgspec.structs.replace(CLUSTER, message="waiting for KubeadmControlPlane pier to be initialized"),
        msgspec.structs.replace(PLANE, message="waiting for the Node of Machine pier-x"),
        Unfinished("Machine", "default/pier-x", "WaitingForNode", "no connection to https://10.0.0.1:6443"),
        Unfinished("Machine", "default/pier-w", "WaitingForBootstrapData", "waiting for KubeadmConfig pier-w"),
        Unfinished("Machine", "default/quay-w", "WaitingForBootstrapData", "waiting for KubeadmConfig quay-w"),
    ]
    late = [msgspec.structs.replace(each, seconds=500.0, cluster=f"default/{each.object[8:12]}") for each in items]
    state = msgspec.structs.replace(PIER, cause=f"NutanixCluster pier: {mismatch}", seconds=500.0)
    waiting = ["Machine pier-x", "KubeadmControlPlane pier", "Cluster pier", "Machine pier-w"]
    assert progress(late, [state])[0] == [
        Finding("NutanixCluster", "default/pier", mismatch, waiting),
        Finding("Machine", "default/quay-w", "waiting for KubeadmConfig quay-w"),
    ]


def test_what_moves_is_under_way_until_it_takes_too_long() -> None:
    booting = Unfinished("NutanixMachine", "default/a", "PoweringOn", "VM a is being powered on", seconds=3.0)
    late = Unfinished("NutanixMachine", "default/b", "PoweringOn", "VM b is being powered on", seconds=500.0)
    stuck, going = progress([booting, late], [])
    assert [(each.object, each.message) for each in stuck] == [("default/b", "VM b is being powered on")]
    assert [each.object for each in going] == ["default/a"]


def test_a_name_counts_in_its_own_namespace_only() -> None:
    elsewhere = Unfinished("NutanixCluster", "other/pier", "InvalidConfiguration", SECRET, wrong=True)
    stuck, going = progress([CLUSTER, elsewhere], [])
    assert [(each.object, each.waiting) for each in stuck] == [("other/pier", [])]
    assert [each.object for each in going] == ["default/pier"]


def test_a_cluster_that_is_down_for_long_says_why_though_no_controller_waits() -> None:
    down = ClusterState("default", "pier", "NotAvailable", cause="the API server does not answer", seconds=600.0)
    assert progress([], [down]) == ([Finding("Cluster", "default/pier", "the API server does not answer")], [])
    young = ClusterState("default", "pier", "NotAvailable", cause="the API server does not answer", seconds=5.0)
    assert progress([], [young]) == ([], [Finding("Cluster", "default/pier", "the API server does not answer")])


def test_what_is_stuck_is_not_under_way_as_well() -> None:
    missing = "KubeadmControlPlane pier does not exist"
    waiting = Unfinished("Cluster", "default/pier", "ObjectDoesNotExist", missing, seconds=3.0)
    late = ClusterState("default", "pier", "NotAvailable", cause=missing, seconds=900.0)
    assert progress([waiting], [late]) == ([Finding("Cluster", "default/pier", missing)], [])


def test_nothing_is_said_of_a_paused_cluster() -> None:
    paused = ClusterState(
        "default", "pier", "Unknown", paused=True, cause="x", seconds=600.0, under_way=["Machine a: b"]
    )
    assert progress([], [paused]) == ([], [])


def test_each_object_is_under_way_once() -> None:
    cluster = ClusterState("default", "pier", "Available", under_way=["MachineDeployment md: from 2 to 4 replicas"])
    same = Unfinished("MachineDeployment", "default/md", "Scaling", "4 Machines exist, 4 desired")
    assert progress([same], [cluster])[1] == [Finding("MachineDeployment", "default/md", "from 2 to 4 replicas")]


def test_objects_that_wait_for_each_other_are_not_hidden() -> None:
    one = Unfinished("Machine", "default/a", "Stuck", "waiting for Machine b", wrong=True)
    two = Unfinished("Machine", "default/b", "Stuck", "waiting for Machine a", wrong=True)
    assert [each.object for each in progress([one, two], [])[0]] == ["default/a", "default/b"]


def test_of_several_controllers_the_one_that_warns_is_heard() -> None:
    quiet = Unfinished("Cluster", "default/pier", "Waiting", "waiting for more")
    broken = Unfinished("Cluster", "default/pier", "Failed", "no such class", wrong=True)
    assert [each.message for each in progress([quiet, broken], [])[0]] == ["no such class"]


def test_an_object_that_warns_is_the_cause_though_its_message_names_one_that_waits_for_it() -> None:
    text = "spec.controlPlaneEndpoint.host: 10.0.0.82 is in 10.0.0.0/16, a network of Pods or Services of Cluster pier"
    infra = Unfinished("NutanixCluster", "default/pier", "EndpointInClusterNetwork", text, wrong=True)
    late = [msgspec.structs.replace(each, seconds=500.0) for each in (WORKERS, PLANE, CLUSTER)]
    waiting = ["Cluster pier", "KubeadmControlPlane pier", "MachineDeployment pier-workers"]
    assert progress([*late, infra], [PIER]) == ([Finding("NutanixCluster", "default/pier", text, waiting)], [])


def test_a_cluster_that_waits_for_long_shows_what_the_awaited_object_reports() -> None:
    # It names an object that waits for the Cluster: that does not make the two wait for each other.
    text = "NutanixCluster pier: KubeadmControlPlane pier: NutanixMachineTemplate pier-cp does not exist yet"
    state = msgspec.structs.replace(PIER, cause=text, seconds=500.0)
    late = [msgspec.structs.replace(each, seconds=500.0) for each in (PLANE, CLUSTER)]
    stuck, _ = progress(late, [state])
    assert stuck == [Finding("Cluster", "default/pier", f"waiting for {text}", ["KubeadmControlPlane pier"])]
