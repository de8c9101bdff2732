"""Rows and columns of `kubectl get`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import Any

import orjson
import pytest

from homeport.apiserver.kinds.age import age, between, human_duration
from homeport.apiserver.kinds.printer.row import printer_for

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
FACTS = orjson.loads(resources.files("homeport.apiserver.kinds").joinpath("builtin.json").read_bytes())["printer"]


def ago(**delta: float) -> str:
    return (NOW - timedelta(**delta)).strftime("%Y-%m-%dT%H:%M:%SZ")


def cells(group: str, kind: str, obj: dict[str, Any]) -> list[Any]:
    meta = {"name": "a", "creationTimestamp": ago(seconds=9), **obj.get("metadata", {})}
    return printer_for(group, kind).cells({**obj, "metadata": meta}, NOW)


@pytest.mark.parametrize("key", sorted(FACTS))
def test_the_columns_are_those_of_the_real_server(key: str) -> None:
    group, _, kind = key.rpartition("/")
    columns = printer_for(group, kind).columns
    ours = [{"name": c.name, "type": c.type, "format": c.format, "priority": c.priority} for c in columns]
    wanted = [{field: column[field] for field in ("name", "type", "format", "priority")} for column in FACTS[key]]
    assert ours == wanted


@pytest.mark.parametrize("key", sorted(FACTS))
def test_an_empty_object_fills_every_column(key: str) -> None:
    group, _, kind = key.rpartition("/")
    printer = printer_for(group, kind)
    row = printer.cells({"metadata": {"name": "a"}}, NOW)
    assert len(row) == len(printer.columns)
    assert orjson.dumps(row)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (-0.5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (190, "3m10s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (11_100, "3h5m"),
        (28_800, "8h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (176_400, "2d1h"),
        (691_200, "8d"),
        (63_071_999, "729d"),
        (63_072_000, "2y"),
        (64_000_000, "2y10d"),
        (252_288_000, "8y"),
    ],
)
def test_durations_keep_what_matters(seconds: float, shown: str) -> None:
    assert human_duration(seconds) == shown


def test_ages_of_nothing_and_of_nonsense() -> None:
    assert age(None, NOW) == "<unknown>"
    assert age("soon", NOW) == "<invalid>"
    assert age("2026-01-02T11:59:30.000000Z", NOW) == "30s"
    assert between(ago(hours=2), ago(hours=1)) == "60m"


def pod(**status: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c"}, {"name": "d"}]}, "status": status}


def container(**state: Any) -> dict[str, Any]:
    ready = "running" in state
    return {"name": "c", "ready": ready, "restartCount": 0, "state": state}


@pytest.mark.parametrize(
    ("obj", "ready", "status", "restarts"),
    [
        (pod(phase="Pending"), "0/2", "Pending", "0"),
        (pod(phase="Running", containerStatuses=[container(running={}), container(running={})]), "2/2", "Running", "0"),
        (
            pod(phase="Running", containerStatuses=[container(waiting={"reason": "CrashLoopBackOff"})]),
            "0/2",
            "CrashLoopBackOff",
            "0",
        ),
        (pod(phase="Failed", containerStatuses=[container(terminated={"exitCode": 3})]), "0/2", "ExitCode:3", "0"),
        (
            pod(
                phase="Running",
                containerStatuses=[
                    {
                        **container(running={}),
                        "restartCount": 4,
                        "lastState": {"terminated": {"finishedAt": ago(minutes=5)}},
                    }
                ],
            ),
            "1/2",
            "Running",
            "4 (5m ago)",
        ),
        (
            {
                "spec": {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}, {"name": "j"}]},
                "status": {"phase": "Pending", "initContainerStatuses": [container(terminated={"exitCode": 0}), {}]},
            },
            "0/1",
            "Init:1/2",
            "0",
        ),
        (
            {"metadata": {"deletionTimestamp": ago(seconds=1)}, **pod(phase="Running")},
            "0/2",
            "Terminating",
            "0",
        ),
        (
            pod(
                phase="Running",
                containerStatuses=[container(terminated={"reason": "Completed"}), container(running={})],
                conditions=[{"type": "Ready", "status": "True"}],
            ),
            "1/2",
            "Running",
            "0",
        ),
    ],
)
def test_a_pod_is_boiled_down_to_one_word(obj: dict[str, Any], ready: str, status: str, restarts: str) -> None:
    assert cells("", "Pod", obj)[1:4] == [ready, status, restarts]


@pytest.mark.parametrize(
    ("group", "kind", "obj", "row"),
    [
        (
            "",
            "Node",
            {
                "metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}},
                "spec": {"unschedulable": True},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                    "nodeInfo": {"kubeletVersion": "v1.37.1"},
                },
            },
            ["a", "Ready,SchedulingDisabled", "control-plane", "9s", "v1.37.1", "10.0.0.1", "<none>"],
        ),
        ("", "Namespace", {"status": {"phase": "Active"}}, ["a", "Active", "9s"]),
        (
            "",
            "Service",
            {
                "spec": {
                    "type": "LoadBalancer",
                    "clusterIP": "10.96.0.1",
                    "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}],
                    "selector": {"b": "2", "a": "1"},
                },
                "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
            },
            ["a", "LoadBalancer", "10.96.0.1", "192.0.2.1", "80:30080/TCP", "9s", "a=1,b=2"],
        ),
        (
            "",
            "Service",
            {"spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.1"}},
            ["a", "LoadBalancer", "10.96.0.1", "<pending>", "<none>", "9s", "<none>"],
        ),
        (
            "",
            "Endpoints",
            {"subsets": [{"addresses": [{"ip": f"10.0.0.{n}"} for n in range(1, 6)], "ports": [{"port": 1}]}]},
            ["a", "10.0.0.1:1,10.0.0.2:1,10.0.0.3:1 + 2 more...", "9s"],
        ),
        ("", "Secret", {"type": "Opaque", "data": {"a": "eA=="}}, ["a", "Opaque", 1, "9s"]),
        (
            "",
            "Event",
            {
                "type": "Normal",
                "reason": "R",
                "message": " m\n",
                "involvedObject": {"kind": "Pod", "name": "p"},
                "source": {"component": "x", "host": "h"},
                "lastTimestamp": ago(minutes=3),
                "firstTimestamp": ago(minutes=4),
                "count": 2,
            },
            ["3m", "Normal", "R", "pod/p", "", "x, h", "m", "4m", 2, "a"],
        ),
        (
            "events.k8s.io",
            "Event",
            {"reason": "R", "note": "n", "regarding": {"kind": "Pod", "name": "p"}, "eventTime": ago(seconds=5)},
            ["5s", "", "R", "pod/p", "", "", "n", "5s", 1, "a"],
        ),
        (
            "apps",
            "Deployment",
            {
                "spec": {
                    "replicas": 3,
                    "selector": {"matchExpressions": [{"key": "k", "operator": "In", "values": ["y", "x"]}]},
                    "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
                },
                "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
            },
            ["a", "1/3", 2, 1, "9s", "c", "i", "k in (x,y)"],
        ),
        (
            "batch",
            "Job",
            {
                "spec": {"completions": 2},
                "status": {
                    "succeeded": 2,
                    "startTime": ago(minutes=3),
                    "completionTime": ago(minutes=1),
                    "conditions": [{"type": "Complete", "status": "True"}],
                },
            },
            ["a", "Complete", "2/2", "2m", "9s"],
        ),
        (
            "batch",
            "CronJob",
            {"spec": {"schedule": "* * * * *", "suspend": False}, "status": {"lastScheduleTime": ago(seconds=40)}},
            ["a", "* * * * *", "<none>", "False", 0, "40s", "9s"],
        ),
        (
            "",
            "PersistentVolumeClaim",
            {
                "spec": {"volumeName": "pv", "storageClassName": "fast", "volumeMode": "Filesystem"},
                "status": {
                    "phase": "Bound",
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                },
            },
            ["a", "Bound", "pv", "1Gi", "RWO,RWX", "fast", "<unset>", "9s", "Filesystem"],
        ),
        (
            "rbac.authorization.k8s.io",
            "RoleBinding",
            {
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [
                    {"kind": "User", "name": "u"},
                    {"kind": "User", "name": "v"},
                    {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
                ],
            },
            ["a", "Role/r", "9s", "u, v", "", "n/s"],
        ),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            {
                "spec": {
                    "group": "example.com",
                    "scope": "Namespaced",
                    "names": {"kind": "Widget", "shortNames": ["wd"]},
                    "versions": [
                        {"name": "v1", "served": True, "storage": True},
                        {"name": "v1beta1", "served": True},
                        {"name": "v1alpha1", "served": False},
                    ],
                },
                "status": {"conditions": [{"type": "Established", "status": "True"}]},
            },
            ["a", "Namespaced", "v1(storage),v1beta1", ago(seconds=9), "example.com", "Widget", "wd", True],
        ),
        (
            "storage.k8s.io",
            "StorageClass",
            {
                "metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
                "provisioner": "x/y",
            },
            ["a (default)", "x/y", "Delete", "Immediate", False, "9s"],
        ),
        (
            "certificates.k8s.io",
            "CertificateSigningRequest",
            {
                "spec": {"signerName": "s", "username": "u", "expirationSeconds": 3600},
                "status": {"conditions": [{"type": "Approved"}], "certificate": "eA=="},
            },
            ["a", "9s", "s", "u", "60m", "Approved,Issued"],
        ),
        ("example.com", "Whatever", {}, ["a", "9s"]),
    ],
)
def test_rows_read_as_the_real_server_writes_them(group: str, kind: str, obj: dict[str, Any], row: list[Any]) -> None:
    assert cells(group, kind, obj)[: len(row)] == row
