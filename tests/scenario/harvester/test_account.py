"""The permissions of the guide's account, those that are checked in advance, and what is really asked: all the same."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
import yaml

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster
from homeport.api.meta import Resource
from homeport.apiserver.auth.authn import authenticated
from homeport.apiserver.request import User
from homeport.ccm.node import initialised
from homeport.ccm.service import SERVICE as WORKLOAD_SERVICE
from homeport.ccm.service import ingress
from homeport.client.protocol import Key, MergePatch
from homeport.providers.harvester.infracluster.resource import IP_POOL, SECRET, VM, VMI
from homeport.runtime.cache import labels_of
from homeport.runtime.testing import virtual
from homeport.sim.engine.journal import Entry
from scenario.ccm.cloud import until_node, workload
from scenario.ccm.test_harvester_services import pool, service, until
from scenario.harvester import manifest
from scenario.harvester.site import NAMESPACE, Site, harvester_site, world
from scenario.harvester.test_trouble import reached

ACCOUNT = Path(__file__).resolve().parents[3] / "examples" / "06-harvester" / "account.yaml"
USER = "system:serviceaccount:default:guide"
NAME = "one"
Permission = tuple[str, str]  # verb, and resource with its group
_PATH = re.compile(
    r"^/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/[^/]+(?=/))?/(?P<resource>[^/]+)(?P<name>/.+)?$"
)
_VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete", "PUT": "update"}
# Asked about itself, which every account may.
_OWN = "selfsubjectaccessreviews.authorization.k8s.io"


def documents() -> list[Any]:
    """With another name: the simulator has an account called homeport."""
    return list(yaml.safe_load_all(ACCOUNT.read_text().replace("name: homeport", "name: guide")))


def granted(*kinds: str) -> set[Permission]:
    """By the Role or the ClusterRole of the guide."""
    return {
        (verb, f"{resource}.{group}" if group else resource)
        for each in documents()
        if each["kind"] in kinds
        for rule in each["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def asked(entry: Entry) -> Permission | None:
    found = _PATH.match(entry.path)
    if found is None:
        return None
    resource = ".".join(each for each in (found["resource"], found["group"]) if each)
    verb = _VERBS.get(entry.method) or ("get" if found["name"] else "list")
    watched = parse_qs(entry.query).get("watch", [""])[0] in ("1", "true")
    return "watch" if watched else verb, resource


def listed(message: str) -> Iterator[Permission]:
    """'get, list secrets in namespace default; ...'"""
    for verbs, resource in re.findall(r"((?:[a-z]+, )*[a-z]+) ([a-z.0-9-]+) in namespace", message):
        yield from ((verb, resource) for verb in verbs.split(", "))


async def with_account(site: Site, *kinds: str) -> None:
    """The plane calls Harvester with this account from now on; `kinds` of the guide's roles apply to it."""
    token = b"account-token"
    site.harvester.server.authenticator._static[hashlib.sha256(token).digest()] = authenticated(User(USER, (), "3"))
    for each in documents() if kinds else _greeting():
        if each["kind"] in kinds or not kinds:
            plural = each["kind"].lower() + "s"
            kind = Resource(
                "rbac.authorization.k8s.io", "v1", each["kind"], plural, not each["kind"].startswith("Cluster")
            )
            await site.infra.create(each, kind=kind)
    config = manifest.kubeconfig(site.harvester.server.pki.ca_pem, token.decode())
    data = {"kubeconfig": base64.b64encode(msgspec.json.encode(config)).decode()}
    await site.client.patch(SECRET, Key(NAMESPACE, "harvester-kubeconfig"), MergePatch({"data": data}))


def _greeting() -> list[dict[str, Any]]:
    """Enough for the first request of a connection, which tells whether the server is Harvester."""
    meta = {"name": "guide", "namespace": NAMESPACE}
    rules = [
        {"apiGroups": ["kubevirt.io"], "resources": ["virtualmachines"], "verbs": ["list"]},
        {"apiGroups": ["harvesterhci.io"], "resources": ["virtualmachineimages"], "verbs": ["list"]},
    ]
    return [
        {"kind": "Role", "metadata": meta, "rules": rules},
        next(each for each in documents() if each["kind"] == "RoleBinding"),
    ]


def with_everything(front: dict[str, Any]) -> list[dict[str, Any]]:
    """A cluster that uses all that needs permissions: keys, evictions, disks, a cloud controller manager."""
    objects = manifest.external(manifest.cluster_objects(NAME, 1, 1))
    objects[1] = manifest.infra_cluster(NAME, "", **front)
    objects[0]["spec"]["clusterNetwork"]["services"]["cidrBlocks"] = ["10.112.0.0/16"]
    for each in objects:
        if each["kind"] == "KubevirtMachineTemplate":
            spec = each["spec"]["template"]["spec"]
            spec["keyPairs"] = ["default/butler-ssh"]
            spec["dataDisks"] = [{"name": "data", "size": "5Gi"}]
            spec["virtualMachineTemplate"]["spec"]["template"]["spec"]["evictionStrategy"] = "External"
    return objects


# Of objects that were moved to another plane or lost their labels, for VMs that somebody stopped before they ran, and
# DataVolumes, which exist without Harvester only.
_SELDOM = {
    ("patch", "virtualmachines.kubevirt.io"),
    ("patch", "persistentvolumeclaims"),
    ("patch", "secrets"),
    ("patch", "loadbalancers.loadbalancer.harvesterhci.io"),
    ("patch", "datavolumes.cdi.kubevirt.io"),
    ("delete", "datavolumes.cdi.kubevirt.io"),
}


@virtual
async def test_what_is_checked_in_advance_is_what_the_guide_grants() -> None:
    found = {("list", "virtualmachines.kubevirt.io"), ("list", "virtualmachineimages.harvesterhci.io")}
    fronts: list[dict[str, Any]] = [{"controlPlaneLoadBalancer": {"ipam": "dhcp"}}, {"controlPlaneServiceTemplate": {}}]
    for front in fronts:
        async with harvester_site() as site:
            await with_account(site)
            await site.have(*with_everything(front))
            said = await site.condition(KubevirtCluster, NAME, "PermissionsSufficient", "False", "PermissionDenied")
            found |= set(listed(said["message"]))
            assert await site.there(VM) == []
    async with harvester_site(world_file=world(harvester=False)) as site:
        await with_account(site)
        await site.have(*with_everything({"controlPlaneServiceTemplate": {}}))
        said = await site.condition(KubevirtCluster, NAME, "PermissionsSufficient", "False", "PermissionDenied")
        assert "are not deleted with the cluster" in said["message"]
        found |= set(listed(said["message"]))
    assert found == granted("Role")


async def _lives(site: Site, front: dict[str, Any]) -> None:
    """From nothing to a Service with an address, an eviction, a second worker, and back to nothing."""
    await site.have(*with_everything(front))
    for machine in await site.running(NAME, 1, 1):
        await until_node(site, machine.metadata.name, initialised)
    await workload(site).client().create(service((80, 30080)), kind=WORKLOAD_SERVICE)
    await until(site, Key("default", "web"), lambda found: found is not None and bool(ingress(found)))
    (worker,) = [each for each in await site.there(VMI) if labels_of(each)["cluster.x-k8s.io/role"] == "worker"]
    evicted = {"status": {"evacuationNodeName": worker["status"]["nodeName"]}}
    await site.infra.patch(VMI, Key(NAMESPACE, worker.name), MergePatch(evicted))

    async def moved() -> bool:
        return any(each.name == worker.name and each.uid != worker.uid for each in await site.there(VMI))

    await reached(moved, 700)
    await site.running(NAME, 1, 1)
    await site.delete(Cluster, NAME)
    await site.gone(Cluster, NAME)
    await site.empty()


@virtual
async def test_a_whole_life_asks_for_nothing_that_the_guide_does_not_grant() -> None:
    used: set[Permission] = set()
    denied: set[Permission] = set()

    def note(entry: Entry) -> None:
        found = asked(entry) if entry.user == USER else None
        if found is not None and found[1] != _OWN:
            (used if entry.status != 403 else denied).add(found)

    async with harvester_site() as site:
        site.journal.on_entry = note
        await site.infra.create(pool("workloads", "10.40.1.0", "10.40.1.50"), kind=IP_POOL)
        await with_account(site, "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
        await _lives(site, {"controlPlaneLoadBalancer": {"ipam": "pool", "ipPool": "workloads"}})
    assert used <= granted("Role", "ClusterRole")
    # In all namespaces first, then in its own.
    assert denied <= {each for each in granted("Role") if each[0] == "list"}
    writes = {each for each in granted("Role") if each[0] in ("create", "patch", "delete") and each[1] != "services"}
    assert writes - used == _SELDOM
