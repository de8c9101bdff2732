"""What can't work is reported before the first machine exists: on the KubevirtCluster, and on the Cluster."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine
from homeport.apiserver.auth.authn import authenticated
from homeport.apiserver.request import User
from homeport.client.protocol import Key, MergePatch
from homeport.providers.harvester.infracluster.resource import IMAGE, IP_POOL, NODE, SECRET, SETTING, VM
from homeport.runtime.testing import virtual
from homeport.sim.harvester.pace import INSTANT
from homeport.sim.harvester.world import Download, Vlan, VmNetwork, WorldFile, WorldImage
from scenario.harvester import manifest
from scenario.harvester.site import Site, harvester_site, world

NAME = "one"
Json = dict[str, Any]


def _cluster(objects: list[Json]) -> Json:
    return next(each for each in objects if each["kind"] == "KubevirtCluster")["spec"]  # type: ignore[no-any-return]


def _template(objects: list[Json]) -> Json:
    found = next(each for each in objects if each["kind"] == "KubevirtMachineTemplate")
    return found["spec"]["template"]["spec"]  # type: ignore[no-any-return]


def _vm(objects: list[Json]) -> Json:
    return _template(objects)["virtualMachineTemplate"]  # type: ignore[no-any-return]


def _inner(objects: list[Json]) -> Json:
    return _vm(objects)["spec"]["template"]["spec"]  # type: ignore[no-any-return]


CASES: tuple[tuple[str, Callable[[list[Json]], Any], str, tuple[str, ...]], ...] = (
    (
        "image misspelt",
        lambda o: _template(o)["bootDisk"].update(image="default/ubuntu-22.04-kube-v1.30"),
        "ReferencesResolved",
        ("NotFound", "did you mean", "ubuntu-22.04-kube-v1.30.0", "KubevirtMachineTemplate one-cp", "bootDisk.image"),
    ),
    (
        "image of another kind",
        lambda o: _template(o)["bootDisk"].update(image="default/talos-1.9"),
        "ReferencesResolved",
        ("ImageDoesNotFit", "Talos", "KubeadmControlPlane one-kcp"),
    ),
    (
        "image is an ISO",
        lambda o: _template(o)["bootDisk"].update(image="default/installer"),
        "ReferencesResolved",
        ("ImageIsISO", "qcow2 or raw"),
    ),
    (
        "image larger than the disk",
        lambda o: _template(o)["bootDisk"].update(size="5Gi"),
        "ReferencesResolved",
        ("InvalidConfiguration", "bootDisk.size", "5Gi", "10 GiB", "use a larger disk"),
    ),
    (
        "network misspelt",
        lambda o: _inner(o)["networks"][0]["multus"].update(networkName="default/workload"),
        "ReferencesResolved",
        ("NotFound", "'default/workload' does not exist", "dashboard, Networks", "did you mean 'default/workloads'"),
    ),
    (
        "namespace unknown",
        lambda o: _vm(o).update(metadata={"namespace": "tenants"}),
        "ReferencesResolved",
        ("NotFound", "namespace 'tenants' does not exist", "create it", "virtualMachineTemplate.metadata.namespace"),
    ),
    (
        "storage class misspelt",
        lambda o: _template(o).update(
            dataDisks=[{"name": "data", "size": "10Gi", "storageClassName": "harvester-longhorns"}]
        ),
        "ReferencesResolved",
        ("NotFound", "storage class 'harvester-longhorns'", "did you mean 'harvester-longhorn'", "dataDisks[0]"),
    ),
    (
        "SSH key misspelt",
        lambda o: _template(o).update(keyPairs=["default/butler"]),
        "ReferencesResolved",
        ("NotFound", "SSH key 'default/butler'", "dashboard, SSH Keys", "did you mean 'default/butler-ssh'"),
    ),
    (
        "pool of addresses that does not exist",
        lambda o: _template(o).update(
            addressesFromPools=[{"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "machines"}]
        ),
        "ReferencesResolved",
        ("WaitingForPool", "InClusterIPPool default/machines does not exist", "addressesFromPools[0]"),
    ),
    (
        "endpoint is the gateway",
        lambda o: _cluster(o)["controlPlaneEndpoint"].update(host="10.40.0.1"),
        "ControlPlaneEndpointFree",
        ("EndpointInUse", "the gateway of network default/workloads", "choose a free address"),
    ),
    (
        "endpoint among the Pods",
        lambda o: _cluster(o)["controlPlaneEndpoint"].update(host="192.168.4.4"),
        "ControlPlaneEndpointFree",
        ("EndpointInClusterNetwork", "192.168.4.4 is in 192.168.0.0/16"),
    ),
    (
        "no endpoint",
        lambda o: _cluster(o).pop("controlPlaneEndpoint"),
        "ControlPlaneEndpointFree",
        ("EndpointMissing", "give a free address"),
    ),
    (
        "no pool for the load balancer",
        lambda o: (
            _cluster(o).pop("controlPlaneEndpoint"),
            _cluster(o).update(controlPlaneLoadBalancer={"ipPool": "workloads"}),
        ),
        "ReferencesResolved",
        ("NotFound", "IPPool 'workloads' does not exist", "IP Pools"),
    ),
    (
        "too large for any host",
        lambda o: _inner(o)["domain"]["memory"].update(guest="1200Gi"),
        "CapacitySufficient",
        ("InsufficientCapacity", "KubeadmControlPlane one-kcp", "no host has that much left", "800 GiB"),
    ),
)


def _world(**more: Any) -> WorldFile:
    found = world(**more)
    image = WorldImage(name="installer", url="https://example.com/ubuntu-22.04.iso")
    return msgspec.structs.replace(found, images=(*found.images, image))


@pytest.mark.parametrize(("change", "type_", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_can_not_work_is_reported_before_the_first_machine(
    change: Callable[[list[Json]], Any], type_: str, words: tuple[str, ...]
) -> None:
    @virtual
    async def run() -> None:
        async with harvester_site(world_file=_world()) as site:
            objects = manifest.cluster_objects(NAME, 1, 0)
            change(objects)
            await site.have(*objects)
            await _reported(site, type_, *words)

    run()


async def _reported(site: Site, type_: str, *words: str) -> None:
    """On the KubevirtCluster with its reason, and on the Cluster; no VM exists."""
    await site.condition(KubevirtCluster, NAME, type_, "False", *words)
    await site.condition(Cluster, NAME, "InfrastructureReady", "False", *words[1:])
    assert await site.there(VM) == []


async def _created(site: Site) -> None:
    await site.have(*manifest.cluster_objects(NAME, 1, 0))


# -- connections -----------------------------------------------------------------------------------------------------


async def _with_kubeconfig(site: Site, text: str) -> None:
    data = {"kubeconfig": base64.b64encode(text.encode()).decode()}
    await site.client.patch(SECRET, Key("default", "harvester-kubeconfig"), MergePatch({"data": data}))


@virtual
async def test_a_kubeconfig_that_is_not_valid_is_reported_with_its_secret_and_key() -> None:
    async with harvester_site() as site:
        await _with_kubeconfig(site, "clusters: [")
        await _created(site)
        words = ("InvalidConfiguration", "Secret default/harvester-kubeconfig", "key kubeconfig")
        await _reported(site, "InfrastructureConnected", *words)


@virtual
async def test_a_server_that_does_not_answer_is_reported_with_the_firewall_and_the_url() -> None:
    async with harvester_site() as site:
        config = manifest.kubeconfig(site.harvester.server.pki.ca_pem, "token", "https://10.20.0.99:6443")
        await _with_kubeconfig(site, msgspec.json.encode(config).decode())
        await _created(site)
        words = ("Unreachable", "10.20.0.99:6443", "check the server URL", "firewall blocks port 6443")
        await _reported(site, "InfrastructureConnected", *words)


@virtual
async def test_a_certificate_that_does_not_verify_is_reported_with_what_to_set() -> None:
    async with harvester_site() as site:
        config = manifest.kubeconfig(site.harvester.server.pki.ca_pem, "harvester-token")
        config["clusters"][0]["cluster"]["tls-server-name"] = "harvester.example.com"
        await _with_kubeconfig(site, msgspec.json.encode(config).decode())
        await _created(site)
        words = ("Unreachable", "TLS", "certificate-authority-data", "insecure-skip-tls-verify: true")
        await _reported(site, "InfrastructureConnected", *words)


@virtual
async def test_credentials_that_are_not_accepted_are_reported() -> None:
    async with harvester_site() as site:
        config = manifest.kubeconfig(site.harvester.server.pki.ca_pem, "wrong")
        await _with_kubeconfig(site, msgspec.json.encode(config).decode())
        await _created(site)
        words = ("AccessDenied", "does not accept the credentials of Secret default/harvester-kubeconfig", "download")
        await _reported(site, "InfrastructureConnected", *words)


# -- the server ------------------------------------------------------------------------------------------------------


@virtual
async def test_a_harvester_that_is_too_old_is_reported() -> None:
    async with harvester_site(world_file=_world(version="v1.2.2")) as site:
        await _created(site)
        await _reported(site, "VersionSupported", "VersionTooOld", "Harvester v1.2.2", "1.3.0 or later", "upgrade")
        await site.infra.patch(SETTING, Key("", "server-version"), MergePatch({"value": "v1.3.0"}))
        await site.condition(KubevirtCluster, NAME, "VersionSupported", "True", timeout=600)


@virtual
async def test_permissions_that_the_account_lacks_are_listed() -> None:
    async with harvester_site() as site:
        viewer = authenticated(User("system:serviceaccount:default:viewer", (), "2"))
        site.harvester.server.authenticator._static[hashlib.sha256(b"viewer-token").digest()] = viewer
        config = manifest.kubeconfig(site.harvester.server.pki.ca_pem, "viewer-token")
        await _with_kubeconfig(site, msgspec.json.encode(config).decode())
        await _created(site)
        words = ("create, patch, delete virtualmachines.kubevirt.io in namespace default", "Download Kubeconfig")
        await _reported(site, "PermissionsSufficient", "PermissionDenied", *words)


# -- images ----------------------------------------------------------------------------------------------------------


def _image(url: str) -> Json:
    spec = {"displayName": manifest.IMAGE, "sourceType": "download", "url": url, "retry": 1}
    meta = {"name": "image-abcde", "namespace": "default"}
    return {"apiVersion": "harvesterhci.io/v1beta1", "kind": "VirtualMachineImage", "metadata": meta, "spec": spec}


@virtual
async def test_an_image_whose_import_failed_is_reported_with_the_cure() -> None:
    downloads = (Download(url="https://*/broken.qcow2", status=404),)
    async with harvester_site(world_file=_world(downloads=downloads)) as site:
        await site.infra.delete(IMAGE, Key("default", manifest.IMAGE))
        await site.harvester.settled()
        await site.infra.create(_image("https://example.com/broken.qcow2"), kind=IMAGE)
        await _created(site)
        words = ("default/image-abcde was not imported", "correct its URL, or upload it again")
        await site.condition(KubevirtCluster, NAME, "ReferencesResolved", "False", *words, timeout=600)
        await _reported(site, "ReferencesResolved", "InvalidConfiguration", *words)


@virtual
async def test_an_image_that_is_being_imported_is_waited_for_with_its_progress() -> None:
    async with harvester_site(pace=replace(INSTANT, download=600.0)) as site:
        await site.infra.delete(IMAGE, Key("default", manifest.IMAGE))
        await site.harvester.settled()
        await site.infra.create(_image("https://example.com/ubuntu.qcow2"), kind=IMAGE)
        await _created(site)
        words = ("ImageNotReady", "image default/image-abcde is being imported (40 %)")
        await site.condition(KubevirtCluster, NAME, "ReferencesResolved", "False", *words, timeout=600)
        await _reported(site, "ReferencesResolved", *words)
        await site.running(NAME, 1)


# -- networks --------------------------------------------------------------------------------------------------------


@virtual
async def test_a_network_whose_cluster_network_no_host_has_is_reported() -> None:
    async with harvester_site() as site:
        for node in (await site.infra.list(NODE)).items:
            labels = {"network.harvesterhci.io/mgmt": None}
            await site.infra.patch(NODE, Key("", node.name), MergePatch({"metadata": {"labels": labels}}))
        await _created(site)
        words = ("cluster network 'mgmt'", "verify cluster network attachment")
        await _reported(site, "ReferencesResolved", "NetworkNotReady", *words)


@virtual
async def test_a_vlan_that_the_switch_does_not_carry_is_reported_and_stops_nothing() -> None:
    vlans = (Vlan(id=40, subnet="10.40.0.0/16", gateway="10.40.0.1", dhcp=("10.40.4.1-10.40.9.1",), trunked=False),)
    file = _world(vlans=vlans, networks=(VmNetwork(name="workloads", vlan=40),))
    async with harvester_site(world_file=file) as site:
        await _created(site)
        words = ("NetworkUnreachable", "ensure that VLAN 40 exists", "check physical switch VLAN trunking")
        await site.condition(KubevirtCluster, NAME, "ReferencesResolved", "False", *words)
        await site.until(KubevirtCluster, NAME, lambda found: found.status.ready)


@virtual
async def test_networks_of_pods_that_overlap_with_the_machines_are_reported_and_stop_nothing() -> None:
    async with harvester_site() as site:
        objects = manifest.cluster_objects(NAME, 1, 0)
        objects[0]["spec"]["clusterNetwork"]["pods"]["cidrBlocks"] = ["10.40.128.0/17"]
        await site.have(*objects)
        words = ("NetworksOverlap", "network default/workloads (10.40.0.0/16)", "10.40.128.0/17")
        await site.condition(KubevirtCluster, NAME, "NetworksDisjoint", "False", *words)
        await site.running(NAME, 1)


# -- the endpoint ----------------------------------------------------------------------------------------------------


@virtual
async def test_an_endpoint_in_a_pool_of_load_balancers_is_reported() -> None:
    async with harvester_site() as site:
        ranges = [{"subnet": "10.40.0.0/16", "rangeStart": "10.40.0.150", "rangeEnd": "10.40.0.250"}]
        pool = {"metadata": {"name": "workloads"}, "spec": {"ranges": ranges}}
        await site.infra.create(pool, kind=IP_POOL)
        await _created(site)
        words = ("EndpointInPool", "IPPool workloads (10.40.0.150-10.40.0.250)", "range of the DHCP server")
        await _reported(site, "ControlPlaneEndpointFree", *words)
        await site.infra.delete(IP_POOL, Key("", "workloads"))
        await site.condition(KubevirtCluster, NAME, "ControlPlaneEndpointFree", "True", timeout=300)


@virtual
async def test_an_endpoint_that_a_vm_has_is_reported() -> None:
    async with harvester_site() as site:
        await site.have(*manifest.cluster_objects("other", 1, 0))
        await site.running("other", 1)
        held = (await site.infra.list(VM)).items[0].name
        address = next(iter(await _addresses(site, held)))
        objects = manifest.cluster_objects(NAME, 1, 0)
        _cluster(objects)["controlPlaneEndpoint"].update(host=address)
        await site.have(*objects)
        words = ("EndpointInUse", f"VM default/{held} already has the address {address}", "DHCP server")
        await site.condition(KubevirtCluster, NAME, "ControlPlaneEndpointFree", "False", *words)


async def _addresses(site: Site, name: str) -> list[str]:
    found = await site.client.list(KubevirtMachine)
    return [a.address for each in found.items for a in each.status.addresses if a.type == "InternalIP"]


# -- what it costs ---------------------------------------------------------------------------------------------------


@virtual
async def test_a_cluster_that_waits_for_an_image_asks_little() -> None:
    async with harvester_site() as site:
        objects = manifest.cluster_objects(NAME, 1, 0)
        _template(objects)["bootDisk"].update(image="default/nothing")
        await site.have(*objects)
        await site.condition(KubevirtCluster, NAME, "ReferencesResolved", "False", "nothing")
        before = max(entry.number for entry in site.journal)
        await asyncio.sleep(200)
        assert sum(site.calls(before).values()) <= 14, site.calls(before)  # two for each look


# -- KubeVirt without Harvester --------------------------------------------------------------------------------------


@virtual
async def test_plain_kubevirt_is_checked_for_what_it_has() -> None:
    async with harvester_site(world_file=_world(harvester=False)) as site:
        objects = manifest.cluster_objects(NAME, 1, 0)
        _template(objects).pop("bootDisk")
        source = {"pvc": {"namespace": "default", "name": "golden"}}
        storage = {"storageClassName": "fast", "resources": {"requests": {"storage": "10Gi"}}}
        volume = {"metadata": {"name": "boot"}, "spec": {"source": source, "storage": storage}}
        _vm(objects)["spec"]["dataVolumeTemplates"] = [volume]
        _inner(objects)["networks"] = [{"name": "pods", "pod": {}}]
        await site.have(*objects)
        words = (
            "storage class 'fast'",
            "there are: 'harvester-longhorn'",
            "PersistentVolumeClaim default/golden does not exist",
        )
        await _reported(site, "ReferencesResolved", "NotFound", *words)
        found = await site.client.get(KubevirtCluster, Key("default", NAME))
        assert "VersionSupported" not in {each["type"] for each in found.status.conditions}
