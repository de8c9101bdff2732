"""What can't work is told before the first machine exists: on the NutanixCluster, and on the Cluster that people look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.runtime.testing import virtual
from homeport.sim.prism.entity import Nic, Vm
from scenario.nutanix import manifest
from scenario.nutanix.site import Site, nutanix_site

NAME = "one"
Json = dict[str, Any]


def _cluster(objects: list[Json]) -> Json:
    return next(each for each in objects if each["kind"] == "NutanixCluster")["spec"]  # type: ignore[no-any-return]


def _template(objects: list[Json]) -> Json:
    found = next(each for each in objects if each["kind"] == "NutanixMachineTemplate")
    return found["spec"]["template"]["spec"]  # type: ignore[no-any-return]


CASES: tuple[tuple[str, Callable[[list[Json]], Any], str, tuple[str, ...]], ...] = (
    (
        "image misspelt",
        lambda o: _template(o).update(image="ubuntu-22.04-kube-v1.28"),
        "ReferencesResolved",
        ("NotFound", "did you mean", "ubuntu-22.04-kube-v1.28.0", "one-cp-mt"),
    ),
    (
        "image is an ISO",
        lambda o: _template(o).update(image="ubuntu-22.04-server-iso"),
        "ReferencesResolved",
        ("ImageIsISO", "DISK"),
    ),
    (
        "image of another kind",
        lambda o: _template(o).update(image="talos-1.9"),
        "ReferencesResolved",
        ("ImageDoesNotFit", "Talos", "KubeadmControlPlane one-kcp"),
    ),
    (
        "cluster unknown",
        lambda o: _template(o).update(cluster="nutanix-cluster-9"),
        "ReferencesResolved",
        ("NotFound", "nutanix-cluster-1"),
    ),
    (
        "subnet of another cluster",
        lambda o: _template(o).update(subnet=["vm-network-2"]),
        "ReferencesResolved",
        ("NotFound", "not found on cluster 'nutanix-cluster-1'", "vm-network"),
    ),
    (
        "project unknown",
        lambda o: _template(o).update(project="kubernetes"),
        "ReferencesResolved",
        ("NotFound", "project", "did you mean 'kubernetes-project'"),
    ),
    (
        "endpoint that machines get",
        lambda o: _cluster(o)["controlPlaneEndpoint"].update(host="10.0.0.120"),
        "ControlPlaneEndpointFree",
        ("EndpointInPool", "10.0.0.110-10.0.0.250", "vm-network"),
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
        ("EndpointMissing",),
    ),
    (
        "too large",
        lambda o: _template(o).update(memorySize="3Ti"),
        "CapacitySufficient",
        ("InsufficientCapacity", "nutanix-cluster-1", "need 3072 GiB"),
    ),
    (
        "failure domain that does not exist",
        lambda o: _cluster(o).update(controlPlaneFailureDomains=[{"name": "fd-9"}]),
        "FailureDomainsValidated",
        ("FailureDomainMissing", "fd-9"),
    ),
    (
        "failure domain with a wrong subnet",
        lambda o: _cluster(o).update(
            failureDomains=[{"name": "fd", "cluster": "nutanix-cluster-2", "subnets": ["vm-network"]}]
        ),
        "FailureDomainsValidated",
        (
            "NotFound",
            "failure domain fd",
            "'vm-network' is on cluster 'nutanix-cluster-1'; did you mean 'vm-network-2'?",
        ),
    ),
)


@pytest.mark.parametrize(("change", "type_", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_can_not_work_is_reported_before_the_first_machine(
    change: Callable[[list[Json]], Any], type_: str, words: tuple[str, ...]
) -> None:
    @virtual
    async def run() -> None:
        async with nutanix_site() as site:
            objects = manifest.cluster_objects(NAME, 1, 0)
            change(objects)
            await site.have(*objects)
            await site.condition(NutanixCluster, NAME, type_, "False", *words)
            await site.condition(Cluster, NAME, "InfrastructureReady", "False", *words[1:])
            assert site.vms() == []
            assert site.categories() == []
            assert any(each.get("type") == "Warning" for each in await site.events(words[0]))

    run()


def _network(objects: list[Json]) -> Json:
    return next(each for each in objects if each["kind"] == "Cluster")["spec"]["clusterNetwork"]  # type: ignore[no-any-return]


ADVICE: tuple[tuple[str, Callable[[list[Json]], Any], str, tuple[str, ...]], ...] = (
    (
        "image of another version",
        lambda o: _template(o).update(image="ubuntu-22.04-kube-v1.30.0"),
        "ReferencesResolved",
        ("ImageVersionMismatch", "contains Kubernetes v1.30.0 (from its name)", "one-kcp has version v1.28.0"),
    ),
    (
        "endpoint outside of the subnet",
        lambda o: _cluster(o)["controlPlaneEndpoint"].update(host="10.77.0.1"),
        "ControlPlaneEndpointFree",
        ("EndpointOutsideSubnet", "10.77.0.1 is outside the subnets of the machines", "vm-network"),
    ),
    (
        "machines among the Pods",
        lambda o: _network(o).update(pods={"cidrBlocks": ["10.0.2.0/24"]}),
        "NetworksDisjoint",
        ("NetworksOverlap", "overlaps with 10.0.2.0/24"),
    ),
)


@pytest.mark.parametrize(("change", "type_", "words"), [case[1:] for case in ADVICE], ids=[case[0] for case in ADVICE])
def test_what_hardly_works_is_reported_and_holds_nothing_up(
    change: Callable[[list[Json]], Any], type_: str, words: tuple[str, ...]
) -> None:
    @virtual
    async def run() -> None:
        async with nutanix_site() as site:
            objects = manifest.cluster_objects(NAME, 1, 0)
            change(objects)
            await site.have(*objects)
            await site.condition(NutanixCluster, NAME, type_, "False", *words)
            await site.until(NutanixCluster, NAME, lambda c: bool(c.status.initialization.provisioned))
            assert any(each.get("type") == "Warning" for each in await site.events(words[0]))

    run()


@virtual
async def test_a_cluster_without_fault_has_nothing_to_tell() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        await site.running(NAME, 1)
        for type_ in ("ReferencesResolved", "ControlPlaneEndpointFree", "NetworksDisjoint"):
            await site.condition(NutanixCluster, NAME, type_, "True")


async def _refused(site: Site, *words: str) -> None:
    await site.condition(NutanixCluster, NAME, "ControlPlaneEndpointFree", "False", *words)
    assert not [vm for vm in site.vms() if vm.name.startswith(NAME)]


@virtual
async def test_an_endpoint_of_another_cluster_is_refused() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects("other", 1, 0))
        await site.running("other", 1)
        await site.have(*manifest.cluster_objects(NAME, 1, 0, with_secret=False))
        await _refused(site, "EndpointInUse", "default/other")


@virtual
async def test_an_endpoint_that_a_machine_has_already_is_refused_and_taken_once_it_is_free() -> None:
    async with nutanix_site() as site:
        core = site.prism.core
        (element,) = [each for each in core.world.clusters if each.name == "nutanix-cluster-1"]
        (subnet,) = [each for each in core.world.subnets if each.name == "vm-network"]
        nic = Nic(ext_id=core.new_id(), subnet=subnet.ext_id, mac=core.new_mac(), learned=("10.0.0.100",))
        core.put(core.world.vms, Vm(ext_id=core.new_id(), name="squatter", cluster=element.ext_id, nics=(nic,)))
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        await _refused(site, "EndpointInUse", "squatter")
        core.drop(core.world.vms, next(vm.ext_id for vm in core.world.vms if vm.name == "squatter"))
        await site.running(NAME, 1)


@virtual
async def test_everything_that_is_wrong_is_reported_at_once() -> None:
    async with nutanix_site() as site:
        objects = manifest.cluster_objects(NAME, 1, 0)
        _template(objects).update(image="nothing", subnet=["nowhere"], project="nobody")
        await site.have(*objects)
        await site.condition(NutanixCluster, NAME, "Ready", "False", "nothing", "nowhere", "nobody")


@virtual
async def test_a_manifest_in_any_order_waits_for_the_rest_of_itself() -> None:
    async with nutanix_site() as site:
        objects = manifest.cluster_objects(NAME, 1, 0)
        late = [each for each in objects if each["kind"] in ("KubeadmControlPlane", "NutanixMachineTemplate")]
        await site.have(*[each for each in objects if each not in late])
        await site.condition(NutanixCluster, NAME, "ReferencesResolved", "False", "one-kcp does not exist yet")
        await site.have(*late)
        await site.running(NAME, 1, timeout=120)


@virtual
async def test_clusters_of_one_name_in_two_namespaces_share_a_category_and_the_last_one_takes_it_along() -> None:
    async with nutanix_site() as site:
        await site.have({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        await site.have(*manifest.cluster_objects(NAME, 1, 0, "10.0.0.101", "other"))
        await site.running(NAME, 1)
        await site.running(NAME, 1, namespace="other")
        assert site.categories() == [NAME]
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        assert site.categories() == [NAME]
        assert len(site.vms()) == 1
        await site.delete(Cluster, NAME, "other")
        await site.gone(Cluster, NAME, namespace="other")
        assert site.categories() == []
        assert site.vms() == []


@virtual
async def test_clusters_without_a_prism_central_use_that_of_the_whole_installation() -> None:
    async with nutanix_site() as site:
        await site.have({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "capx-system"}})
        objects = manifest.cluster_objects(NAME, 1, 0, with_secret=False)
        _cluster(objects).pop("prismCentral")
        await site.have(*objects)
        await site.condition(NutanixCluster, NAME, "PrismClientInit", "False", "spec.prismCentral", "nutanix-endpoint")
        keys = {"NUTANIX_ENDPOINT": manifest.ADDRESS, "NUTANIX_USER": "admin", "NUTANIX_PASSWORD": "password"}
        await site.have(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "nutanix-creds", "namespace": "capx-system"},
                "stringData": keys,
            }
        )
        await site.running(NAME, 1)


@virtual
async def test_a_prism_central_without_credentials_says_which_are_missing() -> None:
    async with nutanix_site() as site:
        objects = manifest.cluster_objects(NAME, 1, 0, with_secret=False)
        _cluster(objects)["prismCentral"].pop("credentialRef")
        await site.have(*objects)
        words = ("spec.prismCentral.credentialRef", "Secret capx-system/nutanix-creds", "create it")
        await site.condition(NutanixCluster, NAME, "PrismClientInit", "False", *words)
        await site.patch(NutanixCluster, NAME, {"spec": {"prismCentral": {"credentialRef": {"name": "late"}}}})
        await site.have(manifest.secret(name="late"))
        await site.condition(NutanixCluster, NAME, "PrismClientInit", "True")


@virtual
async def test_a_certificate_that_nobody_vouches_for_is_refused_unless_the_bundle_does() -> None:
    async with nutanix_site() as site:
        authority = site.dial.ca_pem.decode()
        object.__setattr__(site.dial, "ca_pem", b"")
        objects = manifest.cluster_objects(NAME, 1, 0)
        bundle = {"kind": "ConfigMap", "name": "bundle"}
        _cluster(objects)["prismCentral"]["additionalTrustBundle"] = bundle
        meta = {"name": "bundle", "namespace": "default"}
        await site.have(*objects)
        await site.condition(NutanixCluster, NAME, "PrismClientInit", "False", "ConfigMap default/bundle")
        await site.have(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"ca-bundle.crt": authority}}
        )
        await site.running(NAME, 1)


@virtual
async def test_an_untrusted_certificate_is_reported_with_what_to_do() -> None:
    async with nutanix_site() as site:
        object.__setattr__(site.dial, "ca_pem", b"")
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        await site.condition(NutanixCluster, NAME, "PrismClientInit", "False", "certificate", "additionalTrustBundle")
