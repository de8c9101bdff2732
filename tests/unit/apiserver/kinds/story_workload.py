"""Stories about what makes Pods: Deployments, sets, Jobs and CronJobs, and about budgets and priorities."""

from __future__ import annotations

from collections.abc import Iterator

from unit.apiserver.kinds.kind_story import Json, Step, Story, check, copy, get, merge, post, put

APPS, BATCH = "/apis/apps/v1/namespaces/default", "/apis/batch/v1/namespaces/default"
TEMPLATE: Json = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTOR: Json = {"matchLabels": {"a": "b"}}
KINDS = ("deployments", "replicasets", "statefulsets", "daemonsets")


def template(**spec: object) -> Json:
    found = copy(TEMPLATE)
    found["spec"].update(spec)
    return found


def workload(kind: str, **spec: object) -> Step:
    return check(f"{APPS}/{kind}", {"metadata": {"name": "x"}, "spec": spec})


def workloads() -> Iterator[Step]:
    for kind in KINDS:
        yield check(f"{APPS}/{kind}", {"metadata": {"name": "x"}})
        yield workload(kind, selector={}, template=TEMPLATE)
        yield workload(kind, selector={"matchLabels": {"x": "y"}}, template=TEMPLATE)
        yield workload(kind, selector=SELECTOR, template=template(restartPolicy="Never", activeDeadlineSeconds=3))
        yield workload(kind, selector=SELECTOR, template=TEMPLATE)
        rules = [
            {"key": "a", "operator": "In"},
            {"key": "a b", "operator": "Foo"},
            {"key": "a", "operator": "Exists", "values": ["x"]},
        ]
        yield workload(kind, selector={"matchExpressions": rules}, template=TEMPLATE)
        yield workload(kind, selector=SELECTOR, template=TEMPLATE, minReadySeconds=-1, revisionHistoryLimit=-1)


def strategies() -> Iterator[Step]:
    def deployment(**spec: object) -> Step:
        return workload("deployments", selector=SELECTOR, template=TEMPLATE, **spec)

    yield deployment(strategy={"type": "Recreate"})
    yield deployment(strategy={"type": "Recreate", "rollingUpdate": {}})
    yield deployment(strategy={"type": "Foo"})
    yield deployment(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}})
    yield deployment(strategy={"rollingUpdate": {"maxSurge": "x", "maxUnavailable": "101%"}})
    yield deployment(progressDeadlineSeconds=5, minReadySeconds=5)
    yield deployment(replicas=-1)
    for update in ({"type": "Foo"}, {"type": "OnDelete"}, {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}):
        yield workload("daemonsets", selector=SELECTOR, template=TEMPLATE, updateStrategy=update)
    wrong: Json = {"podManagementPolicy": "x", "updateStrategy": {"type": "Foo"}, "serviceName": "A_"}
    body: Json = {"metadata": {"name": "x.y"}, "spec": {"selector": SELECTOR, "template": TEMPLATE, **wrong}}
    yield check(f"{APPS}/statefulsets", body)
    yield workload("statefulsets", selector=SELECTOR, template=TEMPLATE, updateStrategy={"type": "OnDelete"})
    mounting = copy(TEMPLATE)
    mounting["spec"]["containers"][0]["volumeMounts"] = [{"name": "d", "mountPath": "/d"}]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = [{"metadata": {"name": "d"}, "spec": claim}]
    yield workload("statefulsets", selector=SELECTOR, template=mounting, volumeClaimTemplates=claims)
    yield check(f"{APPS}/controllerrevisions", {"metadata": {"name": "x"}, "revision": 1})
    yield check(f"{APPS}/controllerrevisions", {"metadata": {"name": "x"}, "revision": 0, "data": {"a": 1}})


def workload_changes() -> Iterator[Step]:
    for kind in KINDS:
        one = f"{APPS}/{kind}/w"
        yield post(f"{APPS}/{kind}", {"metadata": {"name": "w"}, "spec": {"selector": SELECTOR, "template": TEMPLATE}})
        yield merge(one, {"spec": {"selector": {"matchLabels": {"c": "d"}}}})
        for _ in range(2):
            yield merge(one, {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}})
        status = {"numberReady": 1} if kind == "daemonsets" else {"replicas": 1}
        yield merge(f"{one}/status", {"status": {"observedGeneration": 1, **status}})
    yield merge(f"{APPS}/deployments/w/scale", {"spec": {"replicas": 3}})
    yield merge(f"{APPS}/statefulsets/w", {"spec": {"serviceName": "x", "podManagementPolicy": "Parallel"}})
    yield get(f"{APPS}/replicasets?fieldSelector=status.replicas=1")


def jobs() -> Iterator[Step]:
    all_, once = f"{BATCH}/jobs", template(restartPolicy="Never")

    def job(**spec: object) -> Step:
        return check(all_, {"metadata": {"name": "x"}, "spec": spec})

    yield check(all_, {"metadata": {"name": "x"}})
    yield job(template=TEMPLATE)
    yield job(template=once, parallelism=-1, completions=-1, backoffLimit=-1, completionMode="x")
    yield job(template=once, completionMode="Indexed", parallelism=3)
    yield job(template=once, manualSelector=True)
    yield job(template=once, manualSelector=True, selector=SELECTOR)
    yield job(template=once, selector=SELECTOR)
    yield check(all_, {"metadata": {"name": "x", "labels": {"z": "z"}}, "spec": {"template": once, "parallelism": 3}})
    yield post(all_, {"metadata": {"name": "w"}, "spec": {"template": once}})
    yield merge(f"{all_}/w", {"spec": {"parallelism": 2, "suspend": True}})
    yield merge(f"{all_}/w", {"spec": {"completions": 2}})
    yield get(f"{all_}?fieldSelector=status.successful=0")
    yield get(f"{all_}?fieldSelector=foo=x")


def cron_jobs() -> Iterator[Step]:
    all_ = f"{BATCH}/cronjobs"
    work: Json = {"spec": {"template": template(restartPolicy="Never")}}

    def cron(schedule: str, name: str = "x", **spec: object) -> Step:
        return check(all_, {"metadata": {"name": name}, "spec": {"schedule": schedule, "jobTemplate": work, **spec}})

    yield check(all_, {"metadata": {"name": "x"}})
    for schedule in (
        "x", "* * * *", "60 * * * *", "*/0 * * * *", "@daily", "@foo", "@every 5m", "@every x", "TZ=UTC * * * * *",
        "5-1 * * * *", "* * * jan mon", "a * * * *", "1-2-3 * * * *", "*/5/5 * * * *", "-1 * * * *", "* * 0 * *",
    ):  # fmt: skip
        yield cron(schedule)
    yield cron("* * * * *", timeZone="Foo/Bar", concurrencyPolicy="x", successfulJobsHistoryLimit=-1)
    yield cron("* * * * *", timeZone="Europe/Berlin", startingDeadlineSeconds=-1)
    yield cron("* * * * *", name="x" * 60)


def budgets() -> Iterator[Step]:
    all_ = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    priorities = "/apis/scheduling.k8s.io/v1/priorityclasses"
    yield check(all_, {"metadata": {"name": "a"}})
    yield check(all_, {"metadata": {"name": "a"}, "spec": {"minAvailable": 1, "maxUnavailable": 1}})
    yield check(all_, {"metadata": {"name": "a"}, "spec": {"minAvailable": "x", "unhealthyPodEvictionPolicy": "y"}})
    yield post(all_, {"metadata": {"name": "a"}, "spec": {"minAvailable": 1}})
    yield put(f"{all_}/a", {"metadata": {"name": "a"}, "spec": {"minAvailable": 2}})
    yield check(priorities, {"metadata": {"name": "a"}, "value": 2000000000})
    yield check(priorities, {"metadata": {"name": "system-a"}, "value": 20})
    yield check(priorities, {"metadata": {"name": "a"}, "value": 20, "preemptionPolicy": "x"})
    yield post(priorities, {"metadata": {"name": "a"}, "value": 20})
    yield get(priorities)


def replication_controllers() -> Iterator[Step]:
    url = "/api/v1/namespaces/default/replicationcontrollers"

    def controller(**spec: object) -> Step:
        return check(url, {"metadata": {"name": "x"}, "spec": spec})

    yield check(url, {"metadata": {"name": "x"}})
    yield controller(template=TEMPLATE)
    yield controller(selector={"x": "y"}, template=TEMPLATE)
    yield controller(template={"spec": TEMPLATE["spec"]})
    yield controller(template=template(restartPolicy="Never", activeDeadlineSeconds=3))
    yield controller(selector={"a": "b"}, template=TEMPLATE, replicas=-1, minReadySeconds=-1)
    yield controller(selector={"a": "b"})
    yield post(url, {"metadata": {"name": "w", "labels": {"own": "one"}}, "spec": {"template": TEMPLATE}})
    yield merge(f"{url}/w", {"spec": {"replicas": 3}})
    yield get(f"{url}/w/scale")
    yield merge(f"{url}/w/scale", {"spec": {"replicas": 2}})
    yield merge(f"{url}/w/status", {"status": {"replicas": 1, "readyReplicas": 2}})
    yield merge(f"{url}/w/status", {"status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 1}})
    yield merge(f"{url}/w", {"spec": {"selector": {"x": "y"}}})


STORIES: dict[str, Story] = {
    "workloads": workloads,
    "strategies": strategies,
    "replication_controllers": replication_controllers,
    "workload_changes": workload_changes,
    "jobs": jobs,
    "cron_jobs": cron_jobs,
    "budgets": budgets,
}
