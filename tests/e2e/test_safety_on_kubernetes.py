"""On a real kube-apiserver that asks no webhook of ours: what would do harm is refused, or named and left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from capikit.duration import judge_durations
from capikit.outside import outside
from conformance.runtime.world import until as await_object
from e2e.newer_version import VERSION
from e2e.test_homeport_on_cluster import CONFIG_MAP, LEASE, NAMESPACE, Replica, sample, signatures
from e2e.test_webhook_on_kubernetes import PLATFORM, WITHOUT
from homeport import __version__
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource
from homeport.app.kubernetes.install import prepare
from homeport.app.kubernetes.version import ANNOTATION
from homeport.capi.definition.kind import definitions
from homeport.client.errors import Invalid, NotFound
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, MergePatch
from homeport.machinery import condition
from homeport.runtime.definition import establish
from homeport.runtime.informer import Informer
from homeport.runtime.webhook.configuration import VALIDATING
from realkube import RealKube

pytestmark = [pytest.mark.timeout(180)]

CRDS = Path(__file__).resolve().parents[2] / "config" / "crds"
INFRA = "infrastructure.cluster.x-k8s.io"
TEMPLATE = Resource(INFRA, "v1beta1", "NutanixMachineTemplate", "nutanixmachinetemplates")
KCP = KubeadmControlPlane.__resource__
OLD_KCP = Resource(KCP.group, "v1beta1", KCP.kind, KCP.plural)


def shipped() -> list[dict[str, Any]]:
    return [yaml.load(path.read_bytes(), yaml.CSafeLoader) for path in sorted(CRDS.glob("*.yaml"))]


def control_plane(name: str, api_version: str = KCP.api_version, **spec: Any) -> dict[str, Any]:
    reference = {"apiGroup": INFRA, "kind": "NutanixMachineTemplate", "name": "t"}
    whole = {"replicas": 1, "version": "v1.30.0", "machineTemplate": {"spec": {"infrastructureRef": reference}}, **spec}
    return {
        "apiVersion": api_version,
        "kind": KCP.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": whole,
    }


async def until(predicate: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not predicate():  # noqa: ASYNC110 - what it can't read wakes no handler
            await asyncio.sleep(0.05)


async def test_the_definitions_that_we_ship_serve_one_version_and_keep_templates_as_they_are(
    client: HttpClient,
) -> None:
    await establish(client, *shipped())
    await client.create(control_plane("one"), kind=KCP)
    with pytest.raises(NotFound):
        # Without conversion this would prune whatever only the newer version knows.
        await client.patch(OLD_KCP, Key("default", "one"), MergePatch({"metadata": {"annotations": {"a": "b"}}}))
    machine = {
        "vcpuSockets": 2,
        "vcpusPerSocket": 1,
        "memorySize": "4Gi",
        "systemDiskSize": "40Gi",
        "image": {"type": "name", "name": "i"},
        "cluster": {"type": "name", "name": "c"},
        "subnet": [{"type": "name", "name": "s"}],
    }
    template = {
        "apiVersion": TEMPLATE.api_version,
        "kind": TEMPLATE.kind,
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {"template": {"spec": machine}},
    }
    await client.create(template, kind=TEMPLATE)
    key = Key("default", "t")
    with pytest.raises(Invalid, match="immutable"):
        await client.patch(TEMPLATE, key, MergePatch({"spec": {"template": {"spec": {"vcpuSockets": 4}}}}))
    await client.patch(TEMPLATE, key, MergePatch({"metadata": {"labels": {"still": "possible"}}}))
    await client.delete(KCP, Key("default", "one"))
    await client.delete(TEMPLATE, key)


async def test_an_object_of_an_older_version_is_named_and_the_others_are_followed(client: HttpClient) -> None:
    """As with definitions that serve both versions and convert neither."""
    both = [dict(each) for each in definitions() if each["metadata"]["name"] == f"{KCP.plural}.{KCP.group}"]
    await establish(client, *both)
    await client.create(control_plane("fine"), kind=KCP)
    arguments = {"clusterConfiguration": {"apiServer": {"extraArgs": {"v": "4"}}}}  # a list in the newer version
    old = control_plane("old", OLD_KCP.api_version, kubeadmConfigSpec=arguments)
    old["spec"]["machineTemplate"] = {"infrastructureRef": {"apiVersion": f"{INFRA}/v1beta1", "kind": "X", "name": "t"}}
    await client.create(old, kind=OLD_KCP)
    informer = Informer(client, KubeadmControlPlane)
    running = asyncio.create_task(informer.run())
    try:
        await asyncio.wait_for(informer.synced.wait(), 30)
        assert [each.metadata.name for each in informer.cache] == ["fine"]
        assert list(informer.unreadable) == [Key("default", "old")]
        await client.patch(KCP, Key("default", "fine"), MergePatch({"spec": {"replicas": 3}}))
        await until(lambda: [each.spec.replicas for each in informer.cache] == [3])
        await client.delete(OLD_KCP, Key("default", "old"))
        await until(lambda: not informer.unreadable)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await client.delete(KCP, Key("default", "fine"))


async def test_an_unsafe_change_of_a_control_plane_is_reported_and_not_acted_on(kube: RealKube) -> None:
    async with outside(kube, shipped()) as harness:
        for configuration in (await harness.client.list(VALIDATING)).items:
            await harness.client.delete(VALIDATING, Key("", configuration.name))
        await harness.create("one", 1, 0)
        await harness.steady("one", 1, 0, "v1.30.0")
        for change, kind, words in (
            ({"replicas": 2}, "ScalingUp", "spec.replicas is 2: an even number of etcd members is not safe"),
            ({"replicas": 1, "version": "v1.32.0"}, "RollingOut", "upgrade one minor version at a time"),
            ({"version": "v1.29.0"}, "RollingOut", "a finished upgrade can't be taken back"),
            ({"version": "v1.28.0"}, "RollingOut", "a downgrade of more than one minor version is not possible"),
        ):
            await harness.patch(KubeadmControlPlane, "one-cp", {"spec": change})
            await harness.until(KubeadmControlPlane, "one-cp", partial(says, kind=kind, words=words), 60)
            assert len(harness.infra.created) == 1
        await harness.patch(KubeadmControlPlane, "one-cp", {"spec": {"version": "v1.30.0"}})
        await harness.steady("one", 1, 0, "v1.30.0")
        assert len(harness.infra.created) == 1
        await harness.delete(Cluster, "one")
        await harness.gone(Cluster, "one", timeout=120)


async def test_an_older_object_with_a_wrong_duration_is_refused_as_a_mistake_of_the_user(kube: RealKube) -> None:
    async with outside(kube, [dict(each) for each in definitions()]) as harness:
        await judge_durations(harness.client)


def says(obj: Any, kind: str, words: str) -> bool:
    found = condition.find(obj.status.conditions, kind)
    return found is not None and words in found["message"]


async def test_replicas_with_and_without_shards_never_work_at_the_same_time(
    kube: RealKube, client: HttpClient, replicas: list[Replica]
) -> None:
    await client.create({"metadata": {"name": "modes"}}, kind=NAMESPACE)
    common = ("--kubeconfig", str(kube.kubeconfig), "--plugin", "sample_controller:install", "--namespace", "modes")
    alone = Replica(*common)
    replicas.append(alone)
    alone.until("controllers: running")
    shared = Replica(*common, "--shards")
    replicas.append(shared)
    shared.until("controllers: standing by")
    await client.create(sample("modes", "a"), kind=CONFIG_MAP)
    assert await signatures(client, "modes", 1) == {str(alone.pid)}
    assert alone.terminate() == 0
    shared.until("shards agreed", f"-{shared.pid}-")
    late = Replica(*common)
    replicas.append(late)
    late.until("controllers: standing by")
    await client.create(sample("modes", "b"), kind=CONFIG_MAP)
    assert await signatures(client, "modes", 2) == {str(alone.pid), str(shared.pid)}
    assert shared.terminate() == 0
    late.until("controllers: running")
    await client.create(sample("modes", "c"), kind=CONFIG_MAP)
    assert await signatures(client, "modes", 3) == {str(each.pid) for each in replicas}
    assert late.terminate() == 0


async def test_an_older_version_refuses_to_work_where_a_newer_one_has(
    kube: RealKube, client: HttpClient, replicas: list[Replica]
) -> None:
    await prepare(client, PLATFORM, print)
    common = ("--kubeconfig", str(kube.kubeconfig), "--namespace", "homeport-system", *WITHOUT)
    lease = Key("homeport-system", "homeport")

    async def noted(version: str) -> None:
        await await_object(
            client, LEASE, lease, lambda found: (found.metadata.get("annotations") or {}).get(ANNOTATION) == version
        )

    newer = Replica(*common, "--plugin", "newer_version:install")
    replicas.append(newer)
    await noted(VERSION)
    assert newer.terminate() == 0

    # As after `helm rollback`, or `kubectl apply` of an older install.yaml: the Lease is in neither.
    refused = Replica(*common)
    replicas.append(refused)
    assert refused.wait() == 1
    assert f"Homeport {VERSION} has worked on this cluster" in refused.text
    assert "controllers: running" not in refused.text
    advice = "kubectl delete lease -n homeport-system homeport"
    assert f"run '{advice}'" in refused.text
    assert kube.kubectl(*advice.split()[1:]).returncode == 0
    forced = Replica(*common)
    replicas.append(forced)
    await noted(__version__)
    assert forced.terminate() == 0
