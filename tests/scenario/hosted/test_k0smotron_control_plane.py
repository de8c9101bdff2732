"""A K0smotronControlPlane is the control plane of a Cluster; a JoinTokenRequest gives a token for it."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable
from typing import Any

import pytest

from capikit import generic
from homeport.api.cluster.v1beta2 import Cluster as CapiCluster
from homeport.api.k0smotron.v1beta2 import Cluster, JoinTokenRequest, K0smotronControlPlane
from homeport.capi.k0s.token import parse_join_token
from homeport.capi.remote.pki import secret_data
from homeport.client.errors import Invalid
from homeport.client.protocol import Key
from homeport.hosted.k0smotron.grant import ALLOWED_NAMESPACES_ANNOTATION
from homeport.machinery import condition, yaml
from homeport.runtime.testing import virtual
from present import present
from scenario.capi.fault import Killer
from scenario.hosted.k0smotron_stage import (
    CONFIG_MAP,
    NAMESPACE,
    POD,
    SECRET,
    SERVICE,
    Stage,
    capi_objects,
    is_available,
    kmc,
    request,
    stage,
)

QUIET = 40.0  # nobody has died for so long: there was nothing left to write


def said(obj: Any, kind: str = "Available") -> tuple[str, str]:
    found = present(condition.find(obj.status.conditions, kind))
    return found["reason"], found["message"]


def waits(reason: str) -> Callable[[Any], bool]:
    return lambda obj: (condition.find(obj.status.conditions, "Available") or {}).get("reason") == reason


@virtual
async def test_a_cluster_gets_its_endpoint_from_the_control_plane() -> None:
    async with stage() as s:
        await s.have(*capi_objects())
        found = await s.available("edge-cp", K0smotronControlPlane)
        hosted = await s.client.get(Cluster, Key(NAMESPACE, "edge"))
        endpoint = {"host": hosted.spec.external_address, "port": 6443}
        assert (await s.get(generic.CLUSTER, "edge"))["spec"]["controlPlaneEndpoint"] == endpoint
        cluster = await s.client.get(CapiCluster, Key(NAMESPACE, "edge"))
        held = cluster.spec.control_plane_endpoint
        assert (held.host, held.port) == (endpoint["host"], 6443)
        status = found.status
        assert status.initialization.control_plane_initialized
        assert status.external_managed_control_plane
        assert status.version == "v1.33.4+k0s.0"
        assert (status.replicas, status.ready_replicas, status.available_replicas, status.up_to_date_replicas) == (
            1,
            1,
            1,
            1,
        )
        await s.until(CapiCluster, "edge", lambda each: each.status.initialization.control_plane_initialized)
        old = await s.client.get(
            s.plane.resource({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "K0smotronControlPlane"}),
            Key(NAMESPACE, "edge-cp"),
        )
        assert old["status"]["ready"]
        assert old["status"]["initialized"]


@virtual
async def test_k0s_gets_the_network_of_the_cluster() -> None:
    async with stage() as s:
        await s.have(*capi_objects(k0sConfig={"spec": {"network": {"clusterDomain": "mine.local"}}}))
        await s.available("edge-cp", K0smotronControlPlane)
        text = (await s.get(CONFIG_MAP, "kmc-edge-config"))["data"]["K0SMOTRON_K0S_YAML"]
        assert yaml.load(text)["spec"]["network"] == {"podCIDR": "10.8.0.0/16", "clusterDomain": "mine.local"}


@virtual
async def test_infrastructure_without_a_controller_is_made_ready() -> None:
    async with stage() as s:
        infra, cluster, control_plane = capi_objects()
        infra["metadata"]["annotations"] = {"cluster.x-k8s.io/managed-by": "k0smotron"}
        await s.have(infra, cluster, control_plane)
        await s.available("edge-cp", K0smotronControlPlane)
        found = await s.get(generic.CLUSTER, "edge")
        assert found["status"]["initialization"]["provisioned"] is True


@virtual
async def test_the_control_plane_says_what_its_pods_wait_for() -> None:
    async with stage() as s:
        s.sick.add("kmc-edge-0")
        await s.have(*capi_objects())
        found = await s.until(K0smotronControlPlane, "edge-cp", waits("NoReadyReplicas"))
        assert "StatefulSet kmc-edge" in said(found)[1]


@virtual
async def test_an_upgrade_is_reported_when_the_pods_run_it() -> None:
    async with stage() as s:
        await s.have(*capi_objects())
        await s.available("edge-cp", K0smotronControlPlane)
        with pytest.raises(Invalid, match=r"v1\.34 is next"):
            await s.patch(K0smotronControlPlane, "edge-cp", {"spec": {"version": "v1.35.0+k0s.0"}})
        await s.patch(K0smotronControlPlane, "edge-cp", {"spec": {"version": "v1.34.1+k0s.0"}})
        await s.until(
            K0smotronControlPlane,
            "edge-cp",
            lambda each: each.status.version == "v1.34.1+k0s.0" and each.status.up_to_date_replicas == 1,
        )
        pod = await s.get(POD, "kmc-edge-0")
        assert pod["spec"]["containers"][0]["image"].endswith(":v1.34.1-k0s.0")


@virtual
async def test_a_control_plane_is_scaled_and_deleted_with_all_that_it_made() -> None:
    async with stage() as s:
        await s.have(*capi_objects(storage={"type": "etcd", "etcd": {"autoDeletePVCs": True}}))
        await s.available("edge-cp", K0smotronControlPlane)
        await s.patch(K0smotronControlPlane, "edge-cp", {"spec": {"replicas": 3}})
        await s.available("edge-cp", K0smotronControlPlane, replicas=3)
        await s.delete(K0smotronControlPlane, "edge-cp")
        await s.plane.gone(K0smotronControlPlane, Key(NAMESPACE, "edge-cp"), 600)
        await s.plane.settle(quiet=20)
        assert await s.inventory() == {}


@virtual
async def test_a_cluster_of_somebody_else_is_left_alone() -> None:
    async with stage() as s:
        await s.have(kmc())
        await s.available()
        await s.have(*capi_objects())
        await s.until(K0smotronControlPlane, "edge-cp", waits("OwnedByAnother"))
        await s.delete(K0smotronControlPlane, "edge-cp")
        await s.plane.gone(K0smotronControlPlane, Key(NAMESPACE, "edge-cp"), 600)
        assert is_available(await s.client.get(Cluster, Key(NAMESPACE, "edge")))


# -- tokens ----------------------------------------------------------------------------------------------------------


async def token_of(s: Stage, name: str = "join") -> dict[str, Any]:
    """The kubeconfig in a join token, as k0s reads it."""
    text = secret_data(await s.get(SECRET, name), "token")
    found: dict[str, Any] = yaml.load(gzip.decompress(base64.b64decode(text)))
    return found


def made(each: JoinTokenRequest) -> bool:
    return condition.is_true(each.status.conditions, "JoinTokenSecretCreated")


@virtual
async def test_a_request_gives_a_token_that_the_cluster_knows() -> None:
    async with stage() as s:
        await s.have(kmc(), request(), request("other", role="controller", expiry="1h"))
        await s.available()
        worker = await s.until(JoinTokenRequest, "join", made)
        controller = await s.until(JoinTokenRequest, "other", made)
        assert await s.tokens() == {
            f"bootstrap-token-{worker.status.token_id}",
            f"bootstrap-token-{controller.status.token_id}",
        }
        address = (await s.client.get(Cluster, Key(NAMESPACE, "edge"))).spec.external_address
        config = await token_of(s)
        assert config["users"][0]["name"] == "kubelet-bootstrap"
        assert config["clusters"][0]["cluster"]["server"] == f"https://{address}:6443"
        assert (await token_of(s, "other"))["clusters"][0]["cluster"]["server"] == f"https://{address}:9443"
        stored = await s.child.client().get(SECRET, Key("kube-system", f"bootstrap-token-{controller.status.token_id}"))
        assert secret_data(stored, "usage-controller-join") == b"true"
        assert secret_data(stored, "expiration")
        assert [owner.name for owner in worker.metadata.owner_references] == ["edge"]
        secret = secret_data(await s.get(SECRET, "join"), "token").decode()
        assert present(parse_join_token(secret)).secret not in str(worker.status)


@virtual
async def test_a_deleted_request_invalidates_its_token() -> None:
    async with stage() as s:
        await s.have(kmc(), request())
        await s.until(JoinTokenRequest, "join", made)
        await s.delete(JoinTokenRequest, "join")
        await s.plane.gone(JoinTokenRequest, Key(NAMESPACE, "join"), 600)
        assert await s.tokens() == set()
        await s.plane.settle(quiet=20)
        assert "join" not in await s.names(SECRET)


@virtual
async def test_a_token_expires() -> None:
    async with stage() as s:
        await s.have(kmc(), request(expiry="1h"))
        await s.until(JoinTokenRequest, "join", made)
        found = await s.plane.until(
            JoinTokenRequest, Key(NAMESPACE, "join"), lambda each: not made(each), 4000, what="expired"
        )
        assert said(found, "JoinTokenSecretCreated")[0] == "TokenExpired"


@virtual
async def test_requests_go_with_their_cluster_also_from_another_namespace() -> None:
    async with stage() as s:
        await s.have({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        far = {
            "apiVersion": "k0smotron.io/v1beta1",
            "kind": "JoinTokenRequest",
            "metadata": {"name": "far", "namespace": "other"},
            "spec": {"clusterRef": {"name": "edge", "namespace": NAMESPACE}},
        }
        near = kmc()
        near["metadata"]["annotations"] = {ALLOWED_NAMESPACES_ANNOTATION: "other"}
        await s.have(near, request(), far)
        await s.until(JoinTokenRequest, "join", made)
        await s.plane.until(JoinTokenRequest, Key("other", "far"), made, 600)
        await s.delete(Cluster, "edge")
        await s.plane.gone(Cluster, Key(NAMESPACE, "edge"), 600)
        await s.plane.gone(JoinTokenRequest, Key(NAMESPACE, "join"), 600)
        await s.plane.gone(JoinTokenRequest, Key("other", "far"), 600)


@virtual
async def test_a_request_waits_for_its_cluster_and_says_so() -> None:
    async with stage() as s:
        await s.have(request(cluster="nowhere"))
        found = await s.until(
            JoinTokenRequest,
            "join",
            lambda each: condition.find(each.status.conditions, "JoinTokenSecretCreated") is not None,
        )
        assert said(found, "JoinTokenSecretCreated")[0] == "WaitingForCluster"


# -- deaths ----------------------------------------------------------------------------------------------------------


@virtual
async def test_controllers_that_die_after_every_write_make_the_same_control_plane_and_one_token() -> None:
    alive = True
    killer = Killer(lambda: 1 if alive else 0)
    async with stage(wrap=killer.wrap) as s:
        await s.have(*capi_objects(), request())
        while await killer.death(within=QUIET):
            await s.restart()
        alive = False
        await s.restart()
        await s.available("edge-cp", K0smotronControlPlane)
        found = await s.until(JoinTokenRequest, "join", made)
        assert await s.tokens() == {f"bootstrap-token-{found.status.token_id}"}
        assert len([each for each in await s.names(SECRET) if each.startswith("edge-")]) == 8
        assert killer.kills > 20
        alive = True
        await s.restart()
        await s.delete(CapiCluster, "edge")
        while await killer.death(within=QUIET):
            await s.restart()
        alive = False
        await s.restart()
        await s.plane.gone(CapiCluster, Key(NAMESPACE, "edge"), 900)
        await s.plane.settle(quiet=20)
        assert await s.inventory() == {"PersistentVolumeClaim": {"etcd-data-kmc-edge-etcd-0"}}


# -- classes ---------------------------------------------------------------------------------------------------------


@virtual
async def test_a_class_makes_control_planes_from_an_older_template_and_upgrades_them() -> None:
    service = {"type": "LoadBalancer", "apiPort": 6443, "konnectivityPort": 8132, "labels": {"zone": "dmz"}}
    group = "controlplane.cluster.x-k8s.io"
    template = {
        "apiVersion": f"{group}/v1beta1",
        "kind": "K0smotronControlPlaneTemplate",
        "metadata": {"name": "hosted"},
        "spec": {"template": {"spec": {"service": service, "controllerPlaneFlags": ["--debug"]}}},
    }
    infra = {
        "apiVersion": generic.CLUSTER_TEMPLATE.api_version,
        "kind": "GenericClusterTemplate",
        "metadata": {"name": "infra"},
        "spec": {"template": {"spec": {}}},
    }
    refs = {
        "infrastructure": {"apiVersion": infra["apiVersion"], "kind": infra["kind"], "name": "infra"},
        "controlPlane": {"apiVersion": template["apiVersion"], "kind": template["kind"], "name": "hosted"},
    }
    blueprint = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "ClusterClass",
        "metadata": {"name": "hosted"},
        "spec": {name: {"templateRef": ref} for name, ref in refs.items()},
    }
    topology = {"classRef": {"name": "hosted"}, "version": "v1.33.4+k0s.0", "controlPlane": {"replicas": 1}}
    cluster = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "edge"},
        "spec": {"topology": topology},
    }
    async with stage() as s:
        await s.have(template, infra, blueprint, cluster)
        await s.available()
        service_object = await s.get(SERVICE, "kmc-edge-lb")
        assert service_object.metadata["labels"]["zone"] == "dmz"
        await s.patch(CapiCluster, "edge", {"spec": {"topology": {"version": "v1.34.1+k0s.0"}}})
        await s.until(
            POD,
            "kmc-edge-0",
            lambda each: each["spec"]["containers"][0]["image"].endswith(":v1.34.1-k0s.0"),
            "the new version",
        )
