"""Workloads of simulated clusters roll out, count and end as those of the plane do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson

from homeport.api.meta import Resource, Unstructured
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.testing import virtual
from homeport.runtime.workload.kind import CLAIM, JOB, REVISION
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kind import DEPLOYMENT, POD, REPLICA_SET, STATEFUL_SET, VOLUME
from unit.sim.machine.sim_kit import simulation

KEY = Key("default", "app")
LABELS = {"app": "app"}


@asynccontextmanager
async def cluster() -> AsyncIterator[WorkloadCluster]:
    async with simulation() as sim:
        yield await sim.cluster_up()


def workload(image: str = "app:1", **spec: Any) -> dict[str, Any]:
    pod = {
        "hostNetwork": True,
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "c", "image": image}],
        **spec.pop("pod", {}),
    }
    return {"metadata": {"name": "app", "namespace": "default"}, "spec": {"template": {"spec": pod}, **spec}}


def selecting(replicas: int, **spec: Any) -> dict[str, Any]:
    body = workload(replicas=replicas, selector={"matchLabels": LABELS}, **spec)
    body["spec"]["template"]["metadata"] = {"labels": LABELS}
    return body


async def settled(it: WorkloadCluster, *objects: tuple[dict[str, Any], Resource]) -> None:
    await it.put(objects)
    await asyncio.sleep(10)
    await it.controllers.idle()


async def owned(it: WorkloadCluster, kind: Resource) -> list[Unstructured]:
    found = (await it.client().list(kind, Query(namespace="default"))).items
    return sorted((each for each in found if each.name.startswith("app-")), key=lambda each: each.name)


def image_of(pod: Unstructured) -> str:
    return str(pod["spec"]["containers"][0]["image"])


@virtual
async def test_a_deployment_keeps_its_old_revision_and_can_return_to_it() -> None:
    async with cluster() as it:
        await settled(it, (selecting(3), DEPLOYMENT))
        new = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "app:2"}]}}}}
        await it.client().patch(DEPLOYMENT, KEY, MergePatch(new))
        await asyncio.sleep(10)
        assert {image_of(pod) for pod in await owned(it, POD)} == {"app:2"}
        assert sorted(each["spec"]["replicas"] for each in await owned(it, REPLICA_SET)) == [0, 3]
        found = await it.client().get(DEPLOYMENT, KEY)
        assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
        conditions = {each["type"]: each["reason"] for each in found["status"]["conditions"]}
        assert conditions == {"Available": "MinimumReplicasAvailable", "Progressing": "NewReplicaSetAvailable"}
        new["spec"]["template"]["spec"]["containers"][0]["image"] = "app:1"
        await it.client().patch(DEPLOYMENT, KEY, MergePatch(new))
        await asyncio.sleep(10)
        assert {image_of(pod) for pod in await owned(it, POD)} == {"app:1"}
        assert len(await owned(it, REPLICA_SET)) == 2


@virtual
async def test_a_rolling_update_never_goes_below_what_must_be_available() -> None:
    async with cluster() as it:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        await settled(it, (selecting(3, strategy=strategy), DEPLOYMENT))
        counts: list[int] = []
        stop = it.server.store.subscribe(
            "deployments.apps", lambda changes: counts.extend(_available(it) for _ in changes)
        )
        new = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "app:2"}]}}}}
        await it.client().patch(DEPLOYMENT, KEY, MergePatch(new))
        await asyncio.sleep(10)
        stop()
        assert len(counts) > 3
        assert min(counts) >= 3
        assert {image_of(pod) for pod in await owned(it, POD)} == {"app:2"}


def _available(it: WorkloadCluster) -> int:
    """Pods that are Ready and not being deleted."""

    pods = [orjson.loads(record.value) for record in it.server.store.range("pods", prefix="default/app-")]
    return sum(
        any(
            each["type"] == "Ready" and each["status"] == "True" for each in pod.get("status", {}).get("conditions", ())
        )
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
    )


@virtual
async def test_a_stateful_set_has_ordered_pods_claims_and_revisions() -> None:
    async with cluster() as it:
        claim = {
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        for name in ("a", "b"):  # Pods wait for volumes
            source = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": f"/{name}"}}
            await it.put([({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], **source}}, VOLUME)])
        await settled(it, (selecting(2, serviceName="app", volumeClaimTemplates=[claim]), STATEFUL_SET))
        assert [pod.name for pod in await owned(it, POD)] == ["app-0", "app-1"]
        claims = (await it.client().list(CLAIM, Query(namespace="default"))).items
        assert sorted(each.name for each in claims) == ["data-app-0", "data-app-1"]
        found = await it.client().get(STATEFUL_SET, KEY)
        (revision,) = await owned(it, REVISION)
        assert found["status"]["currentRevision"] == revision.name
        assert found["status"]["readyReplicas"] == 2


@virtual
async def test_a_job_completes_and_is_deleted_after_its_time() -> None:
    async with cluster() as it:
        job = workload(completions=2, ttlSecondsAfterFinished=60, pod={"restartPolicy": "Never"})
        await settled(it, (job, JOB))
        found = await it.client().get(JOB, KEY)
        assert found["status"]["succeeded"] == 2
        assert {each["type"] for each in found["status"]["conditions"]} == {"SuccessCriteriaMet", "Complete"}
        await asyncio.sleep(70)
        assert (await it.client().list(JOB, Query(namespace="default"))).items == []
        assert await owned(it, POD) == []


@virtual
async def test_everything_goes_with_its_owner() -> None:
    async with cluster() as it:
        await settled(it, (selecting(2), DEPLOYMENT))
        assert len(await owned(it, POD)) == 2
        await it.client().delete(DEPLOYMENT, KEY)
        await asyncio.sleep(60)
        assert await owned(it, REPLICA_SET) == []
        assert await owned(it, POD) == []


@virtual
async def test_the_first_set_of_a_deployment_is_made_with_all_its_replicas() -> None:
    async with cluster() as it:
        await settled(it, (selecting(3), DEPLOYMENT))
        (made,) = await owned(it, REPLICA_SET)
        found = await it.client().get(DEPLOYMENT, KEY)
    assert (made["spec"]["replicas"], made["metadata"]["generation"]) == (3, 1)
    assert found["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "1"}
    assert (found["metadata"]["generation"], found["status"]["availableReplicas"]) == (1, 3)
