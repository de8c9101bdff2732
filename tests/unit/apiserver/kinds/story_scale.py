"""Stories about HorizontalPodAutoscalers, Job policies, quotas and classes of runtimes and volumes."""

from __future__ import annotations

from collections.abc import Iterator

from unit.apiserver.kinds.kind_story import Json, Step, Story, check, delete, get, merge, post, put
from unit.apiserver.kinds.story_pod import PODS, C, pod

V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
V2 = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
ATTRIBUTES = "/apis/storage.k8s.io/v1/volumeattributesclasses"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}


def scaler(name: str = "x", **spec: object) -> Json:
    return {"metadata": {"name": name}, "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3, **spec}}


def cpu(**target: object) -> Json:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


METRICS: list[Json] = [
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "packets", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "1k"},
        },
    },
    {
        "type": "Object",
        "object": {
            "metric": {"name": "requests"},
            "describedObject": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"},
            "target": {"type": "Value", "value": "10k"},
        },
    },
    {
        "type": "External",
        "external": {
            "metric": {"name": "queue", "selector": {"matchLabels": {"q": "w"}}},
            "target": {"type": "AverageValue", "averageValue": "30"},
        },
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "memory",
            "container": "c",
            "target": {"type": "Utilization", "averageUtilization": 60},
        },
    },
    cpu(type="Utilization", averageUtilization=50),
]


def autoscalers() -> Iterator[Step]:
    yield check(V2, {"metadata": {"name": "x"}})
    yield check(V2, scaler(minReplicas=0))
    yield check(V2, scaler(minReplicas=-1))
    yield check(V2, scaler(minReplicas=0, metrics=METRICS[2:3]))
    yield check(V2, scaler(minReplicas=5, maxReplicas=-1))
    yield check(V2, scaler(scaleTargetRef={"kind": "a/b", "name": "..", "apiVersion": "a/b/c"}))
    yield check(V2, scaler(scaleTargetRef={"kind": "ReplicationController", "name": "r", "apiVersion": "v1"}))
    yield check(V2, scaler(scaleTargetRef={"kind": "Pod", "name": "r", "apiVersion": "v1"}))
    wrong: list[Json] = [
        {},
        {"type": "X"},
        {"type": "Resource"},
        cpu(type="X"),
        cpu(type="Utilization"),
        cpu(type="Utilization", averageUtilization=0, averageValue="0"),
        {"type": "Resource", "resource": {"name": "", "target": {"type": "Utilization", "averageUtilization": 1}}},
        {"type": "Pods", "pods": {"metric": {"name": ""}, "target": {"type": "Value", "value": "1"}}},
        {"type": "Object", "object": {"metric": {"name": "a/b"}, "describedObject": {}, "target": {"type": "Value"}}},
        {
            "type": "External",
            "external": {
                "metric": {"name": "a"},
                "target": {"type": "Value", "value": "-1", "averageValue": "1"},
            },
        },
        {"type": "External", "external": {"metric": {"name": "a"}, "target": {"type": "Value"}}},
        {"type": "ContainerResource", "containerResource": {"name": "x", "container": "A_", "target": {}}},
        {**METRICS[0], **cpu(type="Utilization", averageUtilization=1)},
    ]
    for metric in wrong:
        yield check(V2, scaler(metrics=[metric]))
    rules: Json = {
        "scaleUp": {"stabilizationWindowSeconds": -1, "selectPolicy": "X", "tolerance": "-1"},
        "scaleDown": {
            "stabilizationWindowSeconds": 3601,
            "policies": [
                {"type": "X", "value": 0, "periodSeconds": 0},
                {"type": "Pods", "value": 1, "periodSeconds": 1801},
            ],
        },
    }
    yield check(V2, scaler(behavior=rules))
    yield check(V1, {"metadata": {"name": "x"}})
    yield check(V1, scaler(targetCPUUtilizationPercentage=-5))
    yield check(V1, scaler(scaleTargetRef={"kind": "Deployment", "name": "r"}))


def autoscaler_versions() -> Iterator[Step]:
    yield post(V1, scaler("plain"))
    yield get(f"{V2}/plain")
    yield post(V2, scaler("rich", minReplicas=2, metrics=METRICS, behavior={"scaleDown": {"selectPolicy": "Disabled"}}))
    yield get(f"{V1}/rich")
    yield merge(f"{V1}/rich", {"spec": {"targetCPUUtilizationPercentage": 70, "maxReplicas": 9}})
    yield get(f"{V2}/rich")
    yield merge(f"{V1}/rich", {"metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/metrics": "[]"}}})
    yield get(f"{V2}/rich")
    status: Json = {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "currentMetrics": [
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7, "averageValue": "1"}}}
        ],
        "conditions": [{"type": "AbleToScale", "status": "True", "reason": "r", "message": "m"}],
    }
    yield merge(f"{V2}/rich/status", {"status": status})
    yield get(f"{V1}/rich")
    yield merge(f"{V2}/rich/status", {"status": {"currentReplicas": -1, "desiredReplicas": -1}})
    yield merge(f"{V1}/rich", {"metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/conditions": None}}})
    yield merge(f"{V1}/rich/status", {"metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/metrics": None}}})
    yield get(f"{V2}/rich")
    yield merge(f"{V2}/rich", {"metadata": {"labels": {"a": "b"}}})
    yield merge(f"{V2}/rich", {"spec": {"scaleTargetRef": {"name": "e"}}})
    yield put(f"{V1}/plain", scaler("plain", maxReplicas=4, targetCPUUtilizationPercentage=30))
    yield delete(f"{V1}/plain")


def job_policies() -> Iterator[Step]:
    template = {"spec": {"restartPolicy": "Never", "containers": [C]}}

    def job(**spec: object) -> Step:
        return check(JOBS, {"metadata": {"name": "x"}, "spec": {"template": template, **spec}})

    rules: list[Json] = [
        {},
        {"action": "X", "onExitCodes": {}},
        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [0, 3, 2, 2], "containerName": "nosuch"}},
        {"action": "FailJob", "onExitCodes": {"operator": "X", "values": [1]}},
        {"action": "Count", "onPodConditions": [{"type": "a b", "status": "X"}, {"type": "Ready"}]},
        {
            "action": "Ignore",
            "onExitCodes": {"operator": "NotIn", "values": [1]},
            "onPodConditions": [{"type": "DisruptionTarget"}],
        },
    ]
    for rule in rules:
        yield job(podFailurePolicy={"rules": [rule]})
    yield job(podFailurePolicy={"rules": [rules[5]] * 21})
    yield job(podFailurePolicy={"rules": []}, podReplacementPolicy="TerminatingOrFailed")
    good = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 2], "containerName": "c"}}
    yield check(
        JOBS,
        {
            "metadata": {"name": "x"},
            "spec": {
                "podFailurePolicy": {"rules": [good]},
                "template": {"spec": {"restartPolicy": "OnFailure", "containers": [C]}},
            },
        },
    )
    yield job(successPolicy={"rules": [{"succeededCount": 1}]})
    for found in (
        {},
        {"succeededCount": -1},
        {"succeededCount": 9},
        {"succeededIndexes": "0,2-4"},
        {"succeededIndexes": "4-2"},
        {"succeededIndexes": "0-1-2"},
        {"succeededIndexes": "a"},
        {"succeededIndexes": "9"},
        {"succeededIndexes": "2,1"},
        {"succeededIndexes": "0-1", "succeededCount": 3},
    ):
        yield job(completionMode="Indexed", completions=5, successPolicy={"rules": [found]})
    yield job(completionMode="Indexed", completions=5, successPolicy={"rules": []})
    yield job(completionMode="Indexed", completions=5, maxFailedIndexes=6, backoffLimitPerIndex=1)
    yield job(completionMode="Indexed", completions=100001, parallelism=100001, backoffLimitPerIndex=1)
    for manager in ("", "x", "example.com/a", "A_/b", "example.com/" + "a" * 60, "/a"):
        yield job(managedBy=manager)


def quotas() -> Iterator[Step]:
    def quota(**spec: object) -> Step:
        return check(QUOTAS, {"metadata": {"name": "x"}, "spec": spec})

    for hard in (
        {"cpu": "1", "requests.memory": "1Gi", "pods": "3", "count/jobs.batch": "1", "requests.nvidia.com/gpu": "1"},
        {"foo": "1"},
        {"storage": "1"},
        {"pods": "1.5"},
        {"cpu": "-1"},
        {"a b": "1"},
        {"gold.storageclass.storage.k8s.io/requests.storage": "1Gi"},
    ):
        yield quota(hard=hard)
    yield quota(hard={"services": "1"}, scopes=["BestEffort"])
    yield quota(hard={"cpu": "1"}, scopes=["Terminating", "NotTerminating", "X"])

    def selected(*rules: Json, **hard: str) -> Step:
        return quota(hard=hard, scopeSelector={"matchExpressions": list(rules)})

    yield selected({"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}, pods="1")
    yield selected({"scopeName": "PriorityClass", "operator": "In"}, pods="1")
    yield selected({"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]}, pods="1")
    yield selected({"scopeName": "BestEffort", "operator": "In", "values": ["a"]}, pods="1")
    yield selected({"scopeName": "X", "operator": "Y"}, pods="1")
    yield selected({"scopeName": "BestEffort", "operator": "Exists"}, cpu="1")
    yield post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}, "scopes": ["BestEffort"]}})
    yield merge(f"{QUOTAS}/q", {"spec": {"scopes": ["NotBestEffort"]}})
    yield merge(f"{QUOTAS}/q", {"spec": {"hard": {"pods": "2"}}})
    yield merge(f"{QUOTAS}/q/status", {"status": {"hard": {"pods": "1.5"}, "used": {"pods": "-1"}}})
    yield merge(f"{QUOTAS}/q/status", {"status": {"hard": {"pods": "2"}, "used": {"pods": "1"}}})


def classes() -> Iterator[Step]:
    yield check(RUNTIMES, {"metadata": {"name": "x"}})
    yield check(RUNTIMES, {"metadata": {"name": "x"}, "handler": "A_", "overhead": {"podFixed": {"foo": "1"}}})
    toleration = {"key": "a", "operator": "Exists"}
    scheduling = {"nodeSelector": {"a b": "c"}, "tolerations": [toleration, toleration, {"operator": "X"}]}
    yield check(RUNTIMES, {"metadata": {"name": "x"}, "handler": "h", "scheduling": scheduling})
    good: Json = {
        "metadata": {"name": "kata"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"kata": "yes"}, "tolerations": [toleration]},
    }
    yield post(RUNTIMES, good)
    yield merge(f"{RUNTIMES}/kata", {"handler": "other"})
    yield pod(containers=[C], runtimeClassName="kata")
    yield pod(containers=[C], runtimeClassName="kata", overhead={"cpu": "1"})
    yield pod(containers=[C], runtimeClassName="kata", nodeSelector={"kata": "no"})
    yield delete(f"{RUNTIMES}/kata")
    yield check(ATTRIBUTES, {"metadata": {"name": "x"}})
    yield check(ATTRIBUTES, {"metadata": {"name": "x"}, "driverName": "A B", "parameters": {"": "x"}})
    yield post(ATTRIBUTES, {"metadata": {"name": "x"}, "driverName": "csi.example.com", "parameters": {"iops": "1"}})
    yield merge(f"{ATTRIBUTES}/x", {"driverName": "other", "parameters": {"iops": "2"}})
    # No controller runs beside the recorded server, which would let go of it; ours does at once.
    yield delete(f"{ATTRIBUTES}/x", differs="(metadata.finalizers, metadata.deletion)")
    yield get(f"{PODS}?fieldSelector=status.phase=Nosuch")


STORIES: dict[str, Story] = {
    story.__name__: story for story in (autoscalers, autoscaler_versions, job_policies, quotas, classes)
}
