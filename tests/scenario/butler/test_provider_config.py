"""ProviderConfigs are probed: each mistake is reported on the object with its cure, and goes when it is cured."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import pytest

from conformance.provider.harvester import HarvesterVendor, open_harvester
from conformance.provider.nutanix import ELEMENT, Nutanix, open_nutanix
from conformance.provider.vendor import Open
from homeport.api.butler.v1alpha1 import ProviderConfig, TenantCluster
from homeport.client.dial import DIRECT, DialOptions
from homeport.client.protocol import Key, MergePatch
from homeport.machinery import condition
from homeport.providers.harvester.infracluster.resource import IMAGE, NETWORK
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import Fault, ImportFailure, Match
from scenario.butler.infrastructure import NAMESPACE, SYSTEM, Infrastructure, butler, infrastructure

VENDORS: dict[str, Open] = {
    "nutanix-v4": partial(open_nutanix, version="v4"),
    "nutanix-v3": partial(open_nutanix, version="v3"),
    "harvester": open_harvester,
}
Do = Callable[[Infrastructure], Awaitable[None]]


@pytest.fixture(params=list(VENDORS))
def vendor(request: pytest.FixtureRequest) -> Open:
    return VENDORS[request.param]


@virtual
async def test_a_provider_is_ready_with_names_resolved_images_and_capacity(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        config = await i.ready()
        status = config.status
        assert status.ready
        assert status.validated
        assert status.provider_version
        assert status.endpoint
        assert status.capacity is not None
        assert str(status.capacity.memory).endswith("Gi")
        assert all(each.id for each in status.resolved)
        assert {"rocky", "talos"} <= {each.os for each in status.images}
        states = {each["type"]: each["status"] for each in status.conditions}
        assert states == dict.fromkeys(("Authenticated", "ReferencesResolved", "CapacityKnown", "Ready"), "True")


@virtual
async def test_a_provider_is_probed_again_when_its_secret_changes(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.secret("wrong-password")
        await i.config()
        config = await i.says("Authenticated", "False", "CredentialsInvalid", f"Secret {NAMESPACE}/credentials")
        assert condition.find(config.status.conditions, "ReferencesResolved")["status"] == "Unknown"  # type: ignore[index]
        assert "wrong-password" not in await i.shows(ProviderConfig, SYSTEM)
        await i.secret()
        config = await i.ready()
        assert config.status.credentials_version


@virtual
async def test_a_provider_is_probed_on_a_schedule(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        before = (await i.ready()).status.last_probe_time
        undo = await i.vendor.remove_image()
        config = await i.says("ReferencesResolved", "False", "NotFound", f"spec.{i.type}.image", timeout=400)
        assert config.status.last_probe_time != before
        assert not config.status.ready
        await undo()
        await i.ready()


@virtual
async def test_an_outage_is_reported_and_over_by_itself(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.provider()
        await i.ready()
        i.vendor.refuse(503)
        config = await i.says("Authenticated", "False", "Unreachable", timeout=900)
        assert config.status.validated  # nothing is wrong with what the user wrote
        assert config.status.images
        i.vendor.clear_faults()
        await i.ready()


@virtual
async def test_a_provider_without_its_secret_waits_for_it(vendor: Open) -> None:
    async with infrastructure(vendor) as i:
        await i.config()
        await i.says("Ready", "False", "SecretNotFound", f"Secret {NAMESPACE}/credentials does not exist: create it")
        await i.secret()
        await i.ready()


@pytest.mark.parametrize("type_", ["proxmox", "aws", "azure", "gcp"])
@virtual
async def test_providers_that_do_not_exist_yet_get_a_clear_answer(type_: str) -> None:
    async with infrastructure(VENDORS["harvester"]) as i:
        await i.config({"type": type_, type_: {"anything": "goes"}})
        words = (f"provider {type_} is not supported yet", "the supported providers are: harvester, nutanix")
        await i.says("Ready", "False", "ProviderNotSupported", *words)


@virtual
async def test_a_provider_in_use_names_its_users_and_goes_after_them() -> None:
    async with infrastructure(VENDORS["harvester"]) as i:
        await i.provider()
        await i.ready()
        await i.plane.have(butler("TenantCluster", "shop", {"providerConfigRef": {"name": "main"}}))
        await i.client.delete(ProviderConfig, SYSTEM)
        await i.says("Ready", "False", "InUse", f"used by TenantCluster {NAMESPACE}/shop")
        await i.client.delete(TenantCluster, Key(NAMESPACE, "shop"))
        await i.plane.gone(ProviderConfig, SYSTEM)


@virtual
async def test_a_paused_provider_is_left_alone() -> None:
    async with infrastructure(VENDORS["harvester"]) as i:
        await i.secret()
        body = butler("ProviderConfig", "main", {"type": i.type, i.type: i.vendor.platform_part()})
        body["metadata"]["annotations"] = {"cluster.x-k8s.io/paused": ""}
        await i.plane.have(body)
        await i.pass_time(600)
        found = await i.client.get(ProviderConfig, SYSTEM)
        assert not found.metadata.finalizers
        assert not found.status.conditions
        assert i.vendor.requests() == 0


# -- what the guides' troubleshooting sections are about ------------------------------------------------------------------


@dataclass(frozen=True)
class Mistake:
    """`part`: what the user wrote. `cure`: what the message tells the user to do."""

    type: str  # of the condition
    words: tuple[str, ...]
    part: dict[str, Any]
    cure: dict[str, Any] | None = None
    before: Do | None = None
    dial: DialOptions | None = None
    secret: Callable[[Infrastructure], dict[str, str]] | None = None
    cured_secret: Callable[[Infrastructure], dict[str, str]] | None = None


def prism(i: Infrastructure) -> Nutanix:
    assert isinstance(i.vendor, Nutanix)
    return i.vendor


async def second_subnet(i: Infrastructure, cluster: str) -> None:
    core = prism(i).prism.core
    (subnet,) = [each for each in core.world.subnets if each.name == "vm-network"]
    (element,) = [each for each in core.world.clusters if each.name == cluster]
    core.put(
        core.world.subnets, msgspec.structs.replace(subnet, ext_id=core.new_id(), clusters=(element.ext_id,), vlan=999)
    )


def certificate(i: Infrastructure) -> dict[str, str]:
    pem = prism(i).dial.ca_pem
    return {"ca.pem": pem.decode() if pem else ""}


NUTANIX: dict[str, Mistake] = {
    "wrong port": Mistake(
        "Authenticated",
        ("Unreachable", "can't be reached", "check the address, and that no firewall blocks port 9"),
        {"prismCentral": {"address": "127.0.0.1", "port": 9}},
    ),
    "certificate": Mistake(
        "Authenticated",
        ("CertificateNotTrusted", "set its CA in the key ca.pem of Secret", "spec.nutanix.prismCentral.insecure: true"),
        {},
        dial=DIRECT,
        cured_secret=certificate,
    ),
    "cluster": Mistake(
        "ReferencesResolved",
        ("NotFound", "spec.nutanix.cluster: cluster 'nutanix-clustr-1' not found", "did you mean"),
        {"cluster": {"name": "nutanix-clustr-1"}},
        {"cluster": {"name": ELEMENT}},
    ),
    "image": Mistake(
        "ReferencesResolved",
        ("NotFound", "spec.nutanix.image: image 'talos-1.8' not found", "did you mean", "talos-1.9"),
        {"image": {"name": "talos-1.8"}},
        {"image": {"name": "talos-1.9"}},
    ),
    "ISO": Mistake(
        "ReferencesResolved",
        ("ImageIsISO", "'talos-1.9-iso' is an ISO installer image: a disk image (type DISK, qcow2 or raw) is required"),
        {"image": {"name": "talos-1.9-iso"}},
        {"image": {"name": "talos-1.9"}},
    ),
    "subnet": Mistake(
        "ReferencesResolved",
        ("NotFound", "spec.nutanix.subnet: subnet 'workload-subnet' not found on cluster 'nutanix-cluster-1'"),
        {"subnet": {"name": "workload-subnet"}},
        {"subnet": {"name": "vm-network"}},
    ),
    "storage container": Mistake(
        "ReferencesResolved",
        (
            "NotFound",
            "spec.nutanix.storageContainer: storage container 'gold' not found on cluster 'nutanix-cluster-1'",
        ),
        {"storageContainer": {"name": "gold"}},
        {"storageContainer": {"name": "SelfServiceContainer"}},
    ),
}


async def image_that_failed(i: Infrastructure) -> None:
    sim = harvester(i).harvester
    sim.faults.add(Fault(ImportFailure("got 404 from example.com"), Match(kind="image")))
    spec = {"displayName": "broken", "sourceType": "download", "url": "https://example.com/broken.qcow2", "retry": 0}
    await sim.client().create({"metadata": {"name": "broken", "namespace": "default"}, "spec": spec}, kind=IMAGE)


def harvester(i: Infrastructure) -> HarvesterVendor:
    assert isinstance(i.vendor, HarvesterVendor)
    return i.vendor


def with_cluster(i: Infrastructure, **fields: Any) -> dict[str, str]:
    config = json.loads(i.vendor.credentials()["stringData"]["kubeconfig"])
    cluster = config["clusters"][0]["cluster"]
    cluster |= fields
    config["clusters"][0]["cluster"] = {name: value for name, value in cluster.items() if value is not None}
    return {"kubeconfig": json.dumps(config)}


HARVESTER: dict[str, Mistake] = {
    "server of the node itself": Mistake(
        "Authenticated",
        ("Unreachable", "must be the external address of the cluster"),
        {},
        secret=lambda i: with_cluster(i, server="https://127.0.0.1:9"),
        cured_secret=lambda i: dict(i.vendor.credentials()["stringData"]),
    ),
    "certificate": Mistake(
        "Authenticated",
        ("CertificateNotTrusted", "set certificate-authority-data in the kubeconfig of Secret", "insecure-skip-tls"),
        {},
        secret=lambda i: with_cluster(i, **{"certificate-authority-data": None}),
        cured_secret=lambda i: with_cluster(
            i, **{"certificate-authority-data": None, "insecure-skip-tls-verify": True}
        ),
    ),
    "not a kubeconfig": Mistake(
        "Authenticated",
        ("InvalidConfiguration", f"Secret {NAMESPACE}/credentials, key kubeconfig"),
        {},
        secret=lambda i: {"kubeconfig": "apiVersion: v1\nkind: Config\n"},
        cured_secret=lambda i: dict(i.vendor.credentials()["stringData"]),
    ),
    "network": Mistake(
        "ReferencesResolved",
        ("NotFound", "spec.harvester.networkName: network 'default/workload' does not exist", "default/workloads"),
        {"networkName": "default/workload"},
        {"networkName": "default/workloads"},
    ),
    "image": Mistake(
        "ReferencesResolved",
        ("NotFound", "spec.harvester.imageName: image 'default/talos-1.8' not found", "talos-1.9"),
        {"imageName": "default/talos-1.8"},
        {"imageName": "default/talos-1.9"},
    ),
    "image that was not imported": Mistake(
        "ReferencesResolved",
        ("spec.harvester.imageName: image default/broken was not imported", "got 404 from example.com"),
        {"imageName": "default/broken"},
        {"imageName": "default/talos-1.9"},
        image_that_failed,
    ),
    "storage class": Mistake(
        "ReferencesResolved",
        ("NotFound", "spec.harvester.storageClassName: storage class 'longhorn-ssd' does not exist", "harvester-longh"),
        {"storageClassName": "longhorn-ssd"},
        {"storageClassName": "harvester-longhorn"},
    ),
    "namespace": Mistake(
        "ReferencesResolved",
        ("NotFound", "spec.harvester.namespace: namespace 'vms' does not exist"),
        {"namespace": "vms"},
        {"namespace": "default"},
    ),
}


async def made_and_cured(i: Infrastructure, mistake: Mistake) -> None:
    if mistake.before is not None:
        await mistake.before(i)
    await i.secret(**(mistake.secret(i) if mistake.secret is not None else {}))
    await i.config(**mistake.part)
    config = await i.says(mistake.type, "False", *mistake.words)
    ready = condition.find(config.status.conditions, "Ready") or {}
    assert ready["status"] == "False"
    assert mistake.words[-1] in f"{ready['reason']}: {ready['message']}"
    if mistake.cured_secret is not None:
        await i.secret(**mistake.cured_secret(i))
    await i.change(**(mistake.cure or i.vendor.platform_part()))
    await i.ready()


@pytest.mark.parametrize("case", list(NUTANIX))
@virtual
async def test_a_mistake_on_nutanix_is_reported_with_its_cure(case: str) -> None:
    mistake = NUTANIX[case]
    async with infrastructure(VENDORS["nutanix-v4"], dial=mistake.dial) as i:
        await made_and_cured(i, mistake)


@pytest.mark.parametrize("case", list(HARVESTER))
@virtual
async def test_a_mistake_on_harvester_is_reported_with_its_cure(case: str) -> None:
    async with infrastructure(VENDORS["harvester"]) as i:
        await made_and_cured(i, HARVESTER[case])


@virtual
async def test_subnets_of_the_same_name_are_distinguished_by_the_cluster() -> None:
    async with infrastructure(VENDORS["nutanix-v4"]) as i:
        await second_subnet(i, "nutanix-cluster-2")
        await i.provider()
        assert len((await i.ready()).status.resolved) == 3


@virtual
async def test_an_ambiguous_name_is_reported_with_its_candidates() -> None:
    async with infrastructure(VENDORS["nutanix-v4"]) as i:
        await second_subnet(i, ELEMENT)
        await i.provider()
        config = await i.says("ReferencesResolved", "False", "Ambiguous", "spec.nutanix.subnet", "give its UUID")
        (subnet,) = [each for each in config.status.resolved if each.field == "subnet"]
        assert len(subnet.candidates) == 2
        assert not subnet.id
        await i.change(subnet={"uuid": subnet.candidates[0]})
        await i.ready()


@virtual
async def test_an_image_of_harvester_is_found_by_the_name_that_its_dashboard_shows() -> None:
    async with infrastructure(VENDORS["harvester"]) as i:
        client = harvester(i).harvester.client()
        spec = {"displayName": "my-talos", "sourceType": "download", "url": "https://example.com/talos.qcow2"}
        await client.create({"metadata": {"name": "image-x7k2p", "namespace": "default"}, "spec": spec}, kind=IMAGE)
        await i.provider(imageName="default/my-talos")
        config = await i.ready()
        assert ("imageName", "my-talos", "default/image-x7k2p") in [
            (each.field, each.name, each.id) for each in config.status.resolved
        ]


@virtual
async def test_a_vlan_without_connectivity_is_a_note_and_no_obstacle() -> None:
    async with infrastructure(VENDORS["harvester"]) as i:
        client = harvester(i).harvester.client()
        route = json.dumps({"mode": "auto", "cidr": "10.40.0.0/16", "gateway": "10.40.0.1", "connectivity": "false"})
        annotations = {"network.harvesterhci.io/route": route}
        await client.patch(NETWORK, Key("default", "workloads"), MergePatch({"metadata": {"annotations": annotations}}))
        await i.provider()
        await i.ready()
        await i.says("ReferencesResolved", "True", "check physical switch VLAN trunking", "VLAN 40")
