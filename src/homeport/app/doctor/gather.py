"""Gathers what the doctor looks at: objects, the plane's own state, consoles, workload clusters."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import orjson

from homeport.api.meta import Resource, Unstructured
from homeport.app.doctor.console import read_simulated
from homeport.app.doctor.diagnosis import Commands
from homeport.app.doctor.fact import Facts, Workload
from homeport.app.doctor.probe import probe
from homeport.app.plane.instance import STATUS_PATH
from homeport.app.report.description import Description, Finding
from homeport.app.report.lease import find_waits, read_deployments, read_leases
from homeport.app.report.webhook import read_webhooks
from homeport.app.tree.read import Found, Reader
from homeport.capi.remote import kubeconfig
from homeport.client.config import ConfigError
from homeport.client.dial import DIRECT, DialOptions
from homeport.client.errors import ApiError, NotFound
from homeport.client.http import HttpClient
from homeport.client.protocol import Client, Key, Query
from homeport.runtime.clock import SystemClock

_SECRET = Resource("", "v1", "Secret", "secrets", True)
_NODE = Resource("", "v1", "Node", "nodes", False)
_POD = Resource("", "v1", "Pod", "pods", True)
_PATIENCE_SECONDS = 5.0
_AT_ONCE = 8


async def gather(
    client: HttpClient, key: Key, commands: Commands, *, everywhere: bool = False, ask_providers: bool = False
) -> Facts:
    """About one cluster; about all of a namespace if `key` has no name; about all if `everywhere`. Raises NoCluster.

    `ask_providers`: also connects to the providers of the clusters, if the plane is one that may be on this machine.
    """
    reader = Reader(client)
    found = await (reader.read(key) if key.name else reader.read_all("" if everywhere else key.namespace))
    objects = [*found.objects, *await _providers(client, found)]
    plane = await _ask_plane(client)
    consoles = await read_simulated(client)
    machines = [each for each in objects if each.get("kind") == "Machine"]
    belonging = _belonging(objects, found, whole=not key.name)
    return Facts(
        SystemClock().now(),
        belonging,
        found.roots,
        plane,
        await _workloads(client, objects, found, plane),
        {Key(each.namespace, each.name): consoles.get(_vm(each), []) for each in machines} if consoles else {},
        commands,
        await probe(client, belonging, _dial(plane)) if ask_providers and plane is not None else [],
        await read_webhooks(client) if plane is None else [],
        await _waits(client) if plane is None else [],
        objects,
    )


async def _waits(client: HttpClient) -> list[Finding]:
    deployments = await read_deployments(client)
    return find_waits(deployments, await read_leases(client), SystemClock().now()) if deployments else []


def _dial(plane: Description) -> DialOptions:
    """As the plane dials: in simulation through its network."""
    if not plane.simulators:
        return DIRECT
    authorities = [Path(each.authority) for each in plane.simulators]
    trusted = b"".join(file.read_bytes() for file in authorities if file.exists())
    return DialOptions(plane.simulators[0].proxy, trusted)


def _vm(machine: Unstructured) -> str:
    """The name of the machine's VM: that of its infrastructure object."""
    ref = (machine.get("spec") or {}).get("infrastructureRef") or {}
    return str(ref.get("name") or machine.name)


def _belonging(objects: list[Unstructured], found: Found, *, whole: bool) -> list[Unstructured]:
    """What belongs to the cluster, of everything in its namespaces."""
    if whole:
        return objects
    names = {(each.namespace, each.name) for each in _clusters(objects, found)}
    uids = {each.uid for each in [*found.roots, *_clusters(objects, found)]}
    kept: dict[str, Unstructured] = {}
    while True:
        added = [each for each in objects if each.uid not in kept and _part_of(each, names, uids)]
        if not added:
            return list(kept.values())
        kept |= {each.uid: each for each in added}
        uids |= {each.uid for each in added}


def _part_of(obj: Unstructured, names: set[tuple[str, str]], uids: set[str]) -> bool:
    owners = {str(ref.get("uid")) for ref in obj.metadata.get("ownerReferences") or ()}
    label = (obj.metadata.get("labels") or {}).get("cluster.x-k8s.io/cluster-name", "")
    cluster = str((obj.get("spec") or {}).get("clusterName") or label)
    return obj.uid in uids or bool(owners & uids) or (obj.namespace, cluster) in names


def _clusters(objects: list[Unstructured], found: Found) -> list[Unstructured]:
    """The Clusters of the roots."""
    made = []
    for root in found.roots:
        space = str((root.get("status") or {}).get("tenantNamespace") or root.namespace)
        made += [
            each
            for each in objects
            if each.get("kind") == "Cluster"
            and (each.uid == root.uid or (each.namespace, each.name) == (space, root.name))
        ]
    return made


async def _providers(client: Client, found: Found) -> list[Unstructured]:
    """Objects that describe providers, in whatever namespace they are."""
    here = {each.uid for each in found.objects}
    made: list[Unstructured] = []
    for kind in (
        Resource("butler.butlerlabs.dev", "v1alpha1", "ProviderConfig", "providerconfigs", True),
        Resource("k0rdent.mirantis.com", "v1beta1", "Credential", "credentials", True),
    ):
        try:
            made += [each for each in (await client.list(kind, Query())).items if each.uid not in here]
        except ApiError:
            continue  # not installed, or not for this user
    return made


async def _ask_plane(client: HttpClient) -> Description | None:
    try:
        answer = await client.raw("POST", STATUS_PATH)
        return msgspec.convert(orjson.loads(answer.check(STATUS_PATH)), Description)
    except ApiError:
        return None


async def _workloads(
    client: Client, objects: list[Unstructured], found: Found, plane: Description | None
) -> dict[Key, Workload]:
    """Of clusters that have answered once: before that, their objects say what is missing."""
    proxy = plane.simulators[0].proxy if plane is not None and plane.simulators else ""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def read(cluster: Unstructured) -> tuple[Key, Workload]:
        key = Key(cluster.namespace, cluster.name)
        async with slots:
            return key, await _workload(client, key, proxy)

    ready = [each for each in _clusters(objects, found) if _initialized(each)]
    return dict(await asyncio.gather(*(read(each) for each in ready)))


def _initialized(cluster: Unstructured) -> bool:
    return bool(((cluster.get("status") or {}).get("initialization") or {}).get("controlPlaneInitialized"))


async def _workload(client: Client, cluster: Key, proxy: str) -> Workload:
    key = kubeconfig.secret_key(cluster)
    try:
        secret = await client.get(_SECRET, key)
        config = kubeconfig.parse(kubeconfig.value(secret), where=f"Secret {key}", proxy=proxy)
    except NotFound:
        return Workload(f"Secret {key} does not exist")
    except (ApiError, ConfigError) as error:
        return Workload(str(error))
    left = kubeconfig.remaining(config, SystemClock().now())
    remote = HttpClient(config)
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            nodes = (await remote.list(_NODE, Query())).items
            pods = (await remote.list(_POD, Query(namespace="kube-system"))).items
        return Workload("", nodes, pods, left)
    except TimeoutError:
        return Workload(f"no answer from {config.server} within {_PATIENCE_SECONDS:.0f} s", certificate_seconds=left)
    except ApiError as error:
        return Workload(str(error), certificate_seconds=left)
    finally:
        await remote.close()
