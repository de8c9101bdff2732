"""The Harvester provider writes to a real kube-apiserver with Harvester's and KubeVirt's kinds what it writes to the
simulator, and the account of the guide is enough for it.

No controllers of Harvester run on the real server: no VM boots there, and the test creates the volumes that they would.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine
from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.auth.authn import authenticated
from homeport.apiserver.request import User
from homeport.app.platform import chosen
from homeport.builtin.install import install as install_builtin
from homeport.capi.environment import Environment
from homeport.client.dial import DialOptions
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import load
from homeport.client.protocol import Client, Key, MergePatch, Query
from homeport.providers.harvester.infracluster.resource import (
    CLAIM,
    CLAIM_TEMPLATES,
    IMAGE,
    IP_POOL,
    KEY_PAIR,
    LOAD_BALANCER,
    NETWORK,
    NODE,
    SECRET,
    SERVICE,
    SETTING,
    STORAGE_CLASS,
    VM,
)
from homeport.runtime.cache import labels_of
from homeport.runtime.definition import establish
from homeport.runtime.testing import Plane, plane, shared_pki
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.sim.harvester.definition import definitions
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.network import Loopback, Network, Proxy
from realkube import RealKube
from scenario.harvester import manifest, site

pytestmark = [pytest.mark.timeout(300)]

Json = dict[str, Any]
NAME = "one"
WORKER = "one-worker"
DEFAULT = "default"
TOKEN = "harvester-token"
ACCOUNT = Path(__file__).resolve().parents[2] / "examples" / "06-harvester" / "account.yaml"
_USER = "system:serviceaccount:default:homeport"
_SECONDS = 30.0
_WORLD = (NETWORK, IMAGE, KEY_PAIR, SETTING, STORAGE_CLASS, NODE, IP_POOL)
_KEYS = re.compile(r"(-----BEGIN [A-Z ]+-----).*?(-----END)", re.DOTALL)
_CHECK_KEY = re.compile(r"(ecdsa-sha2-nistp384) \S+")  # of the bootstrap check
_DOMAIN = ".spec.template.spec.domain"
# By its admission and its controllers.
_ADDED_BY_HARVESTER = {
    "LoadBalancer": [".metadata.annotations"],
    "Secret": [".metadata.ownerReferences"],
    "VirtualMachine": [
        ".metadata.annotations.harvesterhci.io/mac-address",
        ".metadata.annotations.harvesterhci.io/vmRunStrategy",
        ".spec.template.spec.affinity",
        ".spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        ".nodeSelectorTerms[0].matchExpressions[1]",
        ".spec.template.spec.terminationGracePeriodSeconds",
        f"{_DOMAIN}.cpu.maxSockets",
        f"{_DOMAIN}.cpu.sockets",
        f"{_DOMAIN}.cpu.threads",
        f"{_DOMAIN}.devices.interfaces[0].macAddress",
        f"{_DOMAIN}.resources.requests",
    ],
}
# Requests with their bodies, so that the test sees what was sent and not only what the server kept of it.
_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Request", "users": [_USER]}, {"level": "None"}],
}


@dataclass
class Real:
    kube: RealKube
    audit: Path

    def requests(self) -> list[Json]:
        """What the account asked for so far."""
        return [json.loads(line) for line in self.audit.read_text().splitlines()]


@pytest.fixture
def real(binaries: dict[str, Path] | str, tmp_path: Path) -> Iterator[Real]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    policy, audit = tmp_path / "policy.json", tmp_path / "audit.log"
    policy.write_text(json.dumps(_AUDIT))
    arguments = [
        f"--audit-policy-file={policy}",
        f"--audit-log-path={audit}",
        # No controller-manager runs that would release claims.
        "--disable-admission-plugins=StorageObjectInUseProtection",
    ]
    with RealKube(binaries, arguments) as kube:
        yield Real(kube, audit)


@asynccontextmanager
async def _simulator() -> AsyncIterator[Harvester]:
    made = await Harvester.open(shared_pki(), world=site.world())
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def _management(port: int, config: Json) -> AsyncIterator[Plane]:
    """A plane with all controllers whose infrastructure cluster listens on this port of this host."""
    network = Network()
    network.attach("harvester", ["10.20.0.10"]).listen(6443, Loopback("127.0.0.1", port))
    proxy = Proxy(network)
    await proxy.start()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(proxy.close)
        made = await stack.enter_async_context(plane())
        environment = Environment(made.manager.client, DialOptions(proxy.url()), made.server)
        install_hooks(chosen().register(environment), made.server)
        await establish(made.client, *chosen().definitions())
        install_builtin(made.server, made.manager)
        chosen().install(made.manager, environment)
        await made.start()
        await made.have(manifest.secret(config))
        yield made


async def _serve(harvester: Harvester) -> tuple[int, Json]:
    url = await harvester.serve()
    user = authenticated(User("harvester-admin", ("system:masters",), "1"))
    harvester.server.authenticator._static[hashlib.sha256(TOKEN.encode()).digest()] = user
    return int(url.rpartition(":")[2]), manifest.kubeconfig(harvester.server.pki.ca_pem, TOKEN)


# -- the real server as Harvester -----------------------------------------------------------------------------------


async def _equip(client: Client, world: Client) -> None:
    """Harvester's kinds, and the objects of the simulated world that the provider reads."""
    await establish(client, *definitions())
    for kind in _WORLD:
        for each in (await world.list(kind, Query(namespace=DEFAULT if kind.namespaced else ""))).items:
            kept = ("name", "namespace", "labels", "annotations")
            meta = {name: each.metadata[name] for name in kept if name in each.metadata}
            await client.create({**each, "metadata": meta}, kind=kind)
            if each.get("status"):
                await _set_status(client, kind, each)


async def _set_status(client: Client, kind: Resource, obj: Unstructured) -> None:
    key, patch = Key(obj.namespace, obj.name), MergePatch({"status": obj["status"]})
    stored = await client.get(kind, key)
    if stored.get("status") != obj["status"]:
        await client.patch(kind, key, patch, subresource="status")


async def _account(kube: RealKube, *, cluster_wide: bool = True, without: str = "") -> tuple[int, Json]:
    """The kubeconfig of the account of the guide; `without` the permissions on one kind."""
    objects = [
        each for each in yaml.safe_load_all(ACCOUNT.read_text()) if cluster_wide or "Cluster" not in each["kind"]
    ]
    for each in objects:
        if "rules" in each:
            each["rules"] = [rule for rule in each["rules"] if without not in rule["resources"]]
    listed = yaml.safe_dump_all(objects)
    applied = await asyncio.to_thread(kube.kubectl, "apply", "--validate=strict", "-f", "-", stdin=listed)
    assert applied.returncode == 0, applied.stderr
    token = await asyncio.to_thread(kube.kubectl, "create", "token", "homeport")
    assert token.returncode == 0, token.stderr
    return kube.port, manifest.kubeconfig(kube.ca.read_bytes(), token.stdout.strip())


async def _create_claims(client: Client, vm: Unstructured) -> None:
    """As Harvester does when it sees the annotation of a VM."""
    for each in json.loads(vm.metadata["annotations"][CLAIM_TEMPLATES]):
        meta = {**each["metadata"], "namespace": vm.namespace}
        await client.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", **each, "metadata": meta}, kind=CLAIM)


# -- what a user creates --------------------------------------------------------------------------------------------


def _cluster(host: str = manifest.VIP, **endpoint: Any) -> list[Json]:
    """One control plane, and a worker whose bootstrap data is given: no control plane ever runs on the real server."""
    return [
        manifest.cluster(NAME),
        manifest.infra_cluster(NAME, host, **endpoint),
        manifest.control_plane(NAME, 1),
        manifest.template(f"{NAME}-cp", manifest.machine_spec(keyPairs=["default/butler-ssh"])),
        *_worker(),
    ]


def _worker() -> list[Json]:
    meta = {"name": WORKER, "namespace": DEFAULT, "labels": {"cluster.x-k8s.io/cluster-name": NAME}}
    ref = {"apiGroup": manifest.INFRA.partition("/")[0], "kind": "KubevirtMachine", "name": WORKER}
    spec = {"clusterName": NAME, "version": manifest.VERSION, "bootstrap": {"dataSecretName": "data"}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "data", "namespace": DEFAULT},
            "stringData": {"value": "#cloud-config\n", "format": "cloud-config"},
        },
        {"apiVersion": manifest.INFRA, "kind": "KubevirtMachine", "metadata": meta, "spec": manifest.machine_spec()},
        {
            "apiVersion": manifest.CAPI,
            "kind": "Machine",
            "metadata": meta,
            "spec": {**spec, "infrastructureRef": ref},
        },
    ]


def _is_being_created(machine: KubevirtMachine) -> bool:
    return any("is being created" in each.get("message", "") for each in machine.status.conditions) or bool(
        machine.spec.provider_id
    )


async def _created(client: Client, kind: Resource, count: int) -> list[Unstructured]:
    """Objects of a kind, once there are so many."""
    found: dict[str, Unstructured] = {}
    async with asyncio.timeout(_SECONDS), client.watch(kind, Query(namespace=DEFAULT), initial_events=True) as events:
        async for event in events:
            if event.type in ("ADDED", "MODIFIED"):
                found[event.object.name] = event.object
            if len(found) >= count:
                break
    return list(found.values())


# -- what was written -----------------------------------------------------------------------------------------------


async def _written(p: Plane, client: Client) -> Json:
    """The provider's objects, without what a server or Harvester adds, and with roles in place of names and UIDs."""
    cluster = await p.until(KubevirtCluster, Key(DEFAULT, NAME), lambda c: c.status.ready, _SECONDS)
    await p.until(KubevirtMachine, Key(DEFAULT, WORKER), _is_being_created, _SECONDS)
    await _created(client, VM, 2)
    machines = (await p.client.list(KubevirtMachine, Query(namespace=DEFAULT))).items
    roles = {cluster.metadata.uid: "CLUSTER-UID"}
    for each in machines:
        role = "WORKER" if each.metadata.name == WORKER else "CONTROL-PLANE"
        roles[each.metadata.uid], roles[each.metadata.name] = f"{role}-UID", role
    found = {}
    for kind in (VM, SECRET, LOAD_BALANCER, SERVICE):
        for obj in (await client.list(kind, Query(namespace=DEFAULT))).items:
            if any(uid in roles for uid in labels_of(obj).values()):
                found[_named(f"{kind.kind} {obj.name}", roles)] = json.loads(_named(json.dumps(_plain(obj)), roles))
    return found


def _named(text: str, roles: Mapping[str, str]) -> str:
    for value, role in roles.items():
        text = text.replace(value, role)
    return text


def _plain(obj: Mapping[str, Any]) -> Json:
    meta = obj["metadata"]
    plain = {name: value for name, value in obj.items() if name not in ("metadata", "status")}
    plain["metadata"] = {name: meta[name] for name in ("labels", "annotations", "ownerReferences") if name in meta}
    if "data" in plain:
        texts = {name: base64.b64decode(value).decode() for name, value in plain["data"].items()}
        plain["data"] = {name: _CHECK_KEY.sub(r"\1", _KEYS.sub(r"\1\2", text)) for name, text in texts.items()}
    return plain


def _changes(written: Any, simulated: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """How the simulated object differs: (path, "added") or (path, "changed"). What is missing there is changed."""
    if isinstance(written, dict) and isinstance(simulated, dict):
        yield from ((f"{path}.{name}", "added") for name in simulated if name not in written)
        for name, value in written.items():
            yield from _changes(value, simulated.get(name), f"{path}.{name}")
    elif isinstance(written, list) and isinstance(simulated, list) and len(written) <= len(simulated):
        yield from ((f"{path}[{number}]", "added") for number in range(len(written), len(simulated)))
        for number, value in enumerate(written):
            yield from _changes(value, simulated[number], f"{path}[{number}]")
    elif written != simulated:
        yield path, "changed"


async def _delete(p: Plane, client: Client) -> None:
    """The cluster, after Harvester created the volumes of its VMs; nothing of it is left."""
    for vm in (await client.list(VM, Query(namespace=DEFAULT))).items:
        await _create_claims(client, vm)
    await p.client.delete(Cluster, Key(DEFAULT, NAME))
    await p.gone(Cluster, Key(DEFAULT, NAME), _SECONDS)
    left = [
        f"{kind.kind} {each.name}"
        for kind in (VM, CLAIM, LOAD_BALANCER, SERVICE, SECRET)
        for each in (await client.list(kind, Query(namespace=DEFAULT))).items
    ]
    assert left == ["Service kubernetes", "Secret homeport-token"]


def _assert_strict(kube: RealKube, requests: list[Json]) -> None:
    """The server knows every field that was sent: it would refuse one that it drops."""
    created = [each for each in requests if each["verb"] == "create" and each["objectRef"].get("namespace")]
    assert {each["objectRef"]["resource"] for each in created} >= {"virtualmachines", "secrets"}
    for each in created:
        path = each["requestURI"].partition("?")[0]
        status, answer = kube.request(f"{path}?dryRun=All&fieldValidation=Strict", "POST", each["requestObject"])
        assert status == 201, answer.decode()


def _denied(requests: list[Json]) -> set[tuple[str, str, str]]:
    return {
        (each["verb"], each["objectRef"]["resource"], each["objectRef"].get("namespace", ""))
        for each in requests
        if each["responseStatus"]["code"] == 403
    }


async def test_it_writes_what_it_writes_to_the_simulator_and_removes_it_again(real: Real) -> None:
    async with _simulator() as harvester, HttpClient(load(real.kube.kubeconfig)) as admin:
        await _equip(admin, harvester.client())
        balanced: Json = {"controlPlaneLoadBalancer": {"ipam": "dhcp"}}
        async with _management(*await _serve(harvester)) as p:
            await p.have(*_cluster(**balanced))
            simulated = await _written(p, harvester.client())
        async with _management(*await _account(real.kube)) as p:
            await p.have(*_cluster(**balanced))
            written = await _written(p, admin)
            await _delete(p, admin)
    kinds = sorted(name.partition(" ")[0] for name in written)
    assert kinds == ["LoadBalancer", "Secret", "Secret", "VirtualMachine", "VirtualMachine"]
    assert sorted(simulated) == sorted(written)
    for name, obj in written.items():
        changes = set(_changes(obj, simulated[name]))
        assert changes <= {(path, "added") for path in _ADDED_BY_HARVESTER[obj["kind"]]}, name
    requests = real.requests()
    _assert_strict(real.kube, requests)
    # It looks for what belongs to a cluster everywhere first, then in its own namespace.
    assert {(verb, namespace) for verb, _, namespace in _denied(requests)} <= {("list", "")}


async def test_an_account_of_one_namespace_with_a_service_in_front(real: Real) -> None:
    """Neither the cluster-wide role nor what another kind of endpoint needs is necessary."""
    async with _simulator() as harvester, HttpClient(load(real.kube.kubeconfig)) as admin:
        await _equip(admin, harvester.client())
        async with _management(*await _account(real.kube, cluster_wide=False, without="loadbalancers")) as p:
            cluster, *others = _cluster("", controlPlaneServiceTemplate={"spec": {"type": "ClusterIP"}})
            # Not the Service network of the real server, from which the endpoint comes.
            cluster["spec"]["clusterNetwork"]["services"]["cidrBlocks"] = ["10.112.0.0/16"]
            await p.have(cluster, *others)
            written = await _written(p, admin)
            service = await admin.get(SERVICE, Key(DEFAULT, f"{NAME}-lb"))
            infra = await p.client.get(KubevirtCluster, Key(DEFAULT, NAME))
            assert infra.spec.control_plane_endpoint.host == service["spec"]["clusterIP"]
            await _delete(p, admin)
    assert sum(name.startswith("VirtualMachine ") for name in written) == 2
    requests = real.requests()
    _assert_strict(real.kube, requests)
    assert {each for each in _denied(requests) if each[2]} <= {
        ("get", "loadbalancers", DEFAULT),
        ("list", "loadbalancers", DEFAULT),  # of the workload cluster's Services, when the cluster is deleted
        ("get", "namespaces", DEFAULT),
        ("get", "namespaces", "kube-system"),  # which Harvester this is, where the account may know
    }
