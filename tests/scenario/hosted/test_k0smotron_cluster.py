"""A k0smotron Cluster comes up, changes and goes."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from homeport.api.k0smotron.v1beta2 import Cluster
from homeport.capi.remote.pki import KeyPair, secret_data
from homeport.client.errors import Invalid
from homeport.client.protocol import Key
from homeport.hosted.certificate import sign_client
from homeport.hosted.k0smotron.name import Names
from homeport.machinery import condition, yaml
from homeport.runtime.testing import virtual
from present import present
from scenario.hosted.k0smotron_stage import (
    CLAIM,
    CONFIG_MAP,
    CRON_JOB,
    HOST,
    INGRESS,
    NAMESPACE,
    POD,
    SECRET,
    SERVICE,
    STATEFUL_SET,
    Stage,
    kmc,
    stage,
)

EVERYTHING = {
    "Secret": {
        "edge-ca",
        "edge-sa",
        "edge-proxy",
        "edge-etcd",
        "edge-etcd-server",
        "edge-etcd-peer",
        "edge-apiserver-etcd-client",
        "edge-kubeconfig",
    },
    "Service": {"kmc-edge-lb", "kmc-edge-etcd"},
    "Pod": {"kmc-edge-0", "kmc-edge-etcd-0"},
    "PersistentVolumeClaim": {"etcd-data-kmc-edge-etcd-0"},
    "ConfigMap": {
        "kmc-edge-config",
        "kmc-entrypoint-edge-config",
        "kmc-edge-endpoint",
        "kmc-edge-telemetry-config",
    },
    "StatefulSet": {"kmc-edge", "kmc-edge-etcd"},
}


async def conditions(s: Stage, name: str = "edge") -> dict[str, tuple[str, str]]:
    found = await s.client.get(Cluster, Key(NAMESPACE, name))
    return {each["type"]: (each["status"], each["reason"]) for each in found.status.conditions}


@virtual
async def test_a_control_plane_comes_up_and_reports_it() -> None:
    async with stage() as s:
        await s.have(kmc())
        found = await s.available()
        assert await s.inventory() == EVERYTHING
        assert await conditions(s) == {
            "Paused": ("False", "NotPaused"),
            "ControlPlaneScaling": ("False", "ControlPlaneWithDesiredReplicas"),
            "ControlPlaneUpToDate": ("True", "AllReplicasUpToDate"),
            "Deleting": ("False", "NotDeleting"),
            "ControlPlaneExposed": ("True", "ClusterWithExternalAddress"),
            "CertificatesAvailable": ("True", "Created"),
            "KubeconfigSecretAvailable": ("True", "Created"),
            "ControlPlaneFunctional": ("True", "KubeSystemNamespaceFound"),
            "Available": ("True", "Available"),
        }
        service = await s.get(SERVICE, "kmc-edge-lb")
        assert service["status"]["loadBalancer"]["ingress"] == [{"ip": found.spec.external_address, "ipMode": "VIP"}]
        assert (
            found.status.selector == "app=k0smotron,cluster=edge,cluster.x-k8s.io/control-plane=true,component=cluster"
        )
        assert found.status.deprecated.v1beta1.ready
        secret = await s.get(SECRET, "edge-kubeconfig")
        config = yaml.load(base64.b64decode(secret["data"]["value"]))
        assert config["clusters"][0]["cluster"]["server"] == f"https://{found.spec.external_address}:6443"


@virtual
async def test_a_v1beta1_object_gives_the_same_control_plane() -> None:
    async with stage() as s:
        old = kmc()
        old["apiVersion"] = "k0smotron.io/v1beta1"
        old["spec"]["service"]["annotations"] = {"pool": "edge"}
        old["spec"]["controllerPlaneFlags"] = ["--debug"]
        await s.have(old)
        await s.available()
        service = await s.get(SERVICE, "kmc-edge-lb")
        assert service.metadata["annotations"]["pool"] == "edge"
        script = (await s.get(CONFIG_MAP, "kmc-entrypoint-edge-config"))["data"]["k0smotron-entrypoint.sh"]
        assert "--debug" in script


@virtual
async def test_a_plane_without_nodes_gives_node_ports_the_address_of_its_pods() -> None:
    async with stage() as s:
        await s.have({"apiVersion": "k0smotron.io/v1beta1", "kind": "Cluster", "metadata": {"name": "edge"}})
        found = await s.available()
        assert await s.names(SERVICE) == {"kubernetes", "kmc-edge-nodeport", "kmc-edge-etcd"}
        pod = await s.get(POD, "kmc-edge-0")
        assert found.spec.external_address == pod["status"]["hostIP"]
        secret = await s.get(SECRET, "edge-kubeconfig")
        assert f"https://{found.spec.external_address}:30443".encode() in base64.b64decode(secret["data"]["value"])


@virtual
async def test_what_the_pods_get_fits_together() -> None:
    async with stage() as s:
        await s.have(kmc())
        address = (await s.available()).spec.external_address
        controller = next(each for each in s.launches if each.container["name"] == "controller")
        assert controller.command == ["/bin/sh", "/k0smotron-entrypoint.sh"]
        config = yaml.load(controller.files["/etc/k0s/k0s.yaml"])
        assert config["spec"]["api"]["externalAddress"] == address
        certificates = next(each for each in s.launches if each.container["name"] == "certs-init")
        assert {path.rpartition("/")[2] for path in certificates.files} >= {"ca.crt", "sa.pub", "etcd-ca.crt"}
        etcd = next(each for each in s.launches if each.container["name"] == "etcd")
        assert etcd.env["ETCD_NAME"] == "kmc-edge-etcd-0"
        assert etcd.env["ETCD_ADVERTISE_CLIENT_URLS"] == "https://kmc-edge-etcd-0.kmc-edge-etcd:2379"
        assert etcd.files["/var/lib/k0s/pki/etcd/server.crt"].startswith(b"-----BEGIN CERTIFICATE")


@virtual
async def test_three_replicas_get_three_members_of_etcd_one_after_the_other() -> None:
    async with stage() as s:
        await s.have(kmc(replicas=3))
        await s.available(replicas=3)
        await s.until(STATEFUL_SET, "kmc-edge-etcd", lambda each: each["status"].get("readyReplicas") == 3)
        order = [each.pod["metadata"]["name"] for each in s.launches if each.container["name"] == "etcd"]
        assert order == ["kmc-edge-etcd-0", "kmc-edge-etcd-1", "kmc-edge-etcd-2"]
        await s.patch(Cluster, "edge", {"spec": {"replicas": 1}})
        await s.available(replicas=1)
        assert (await s.get(STATEFUL_SET, "kmc-edge-etcd"))["spec"]["replicas"] == 3


@virtual
async def test_etcd_does_not_grow_while_a_member_is_not_ready() -> None:
    async with stage() as s:
        s.sick.add("kmc-edge-etcd-1")
        await s.have(kmc(replicas=3))
        await s.until(STATEFUL_SET, "kmc-edge-etcd", lambda each: each["spec"]["replicas"] == 2)
        await s.plane.settle(quiet=60)
        assert (await s.get(STATEFUL_SET, "kmc-edge-etcd"))["spec"]["replicas"] == 2


@virtual
async def test_a_control_plane_stops_and_starts_again() -> None:
    async with stage() as s:
        await s.have(kmc())
        await s.available()
        await s.patch(Cluster, "edge", {"spec": {"replicas": 0}})
        await s.until(Cluster, "edge", lambda each: each.status.replicas == 0)
        found = await s.until(Cluster, "edge", lambda each: not condition.is_true(each.status.conditions, "Available"))
        said = present(condition.find(found.status.conditions, "Available"))
        assert said["reason"] == "NoReplicas"
        assert await s.names(POD) == {"kmc-edge-etcd-0"}
        await s.patch(Cluster, "edge", {"spec": {"replicas": 1}})
        await s.available()


@virtual
async def test_an_upgrade_replaces_the_pods_and_a_leap_is_refused() -> None:
    async with stage() as s:
        await s.have(kmc())
        await s.available()
        with pytest.raises(Invalid, match=r"v1\.34 is next"):
            await s.patch(Cluster, "edge", {"spec": {"version": "v1.35.1+k0s.0"}})
        with pytest.raises(Invalid, match="can't downgrade"):
            await s.patch(Cluster, "edge", {"spec": {"version": "v1.32.1+k0s.0"}})
        before = (await s.get(POD, "kmc-edge-0")).uid
        etcd = (await s.get(POD, "kmc-edge-etcd-0")).uid
        await s.patch(Cluster, "edge", {"spec": {"version": "v1.34.1+k0s.0"}})
        await s.until(
            Cluster,
            "edge",
            lambda each: each.status.updated_replicas == 1 and condition.is_true(each.status.conditions, "Available"),
        )
        pod = await s.until(POD, "kmc-edge-0", lambda each: each.uid != before)
        assert pod["spec"]["containers"][0]["image"] == "quay.io/k0sproject/k0s:v1.34.1-k0s.0"
        assert (await s.get(POD, "kmc-edge-etcd-0")).uid == etcd


@virtual
async def test_another_spelling_of_the_version_replaces_nothing() -> None:
    async with stage() as s:
        await s.have(kmc())
        await s.available()
        before = (await s.get(POD, "kmc-edge-0")).uid
        await s.patch(Cluster, "edge", {"spec": {"version": "v1.33.4-k0s.0"}})
        await s.plane.settle(quiet=60)
        assert (await s.get(POD, "kmc-edge-0")).uid == before


@virtual
async def test_deletion_leaves_nothing_but_the_volumes_of_etcd() -> None:
    async with stage() as s:
        await s.have(kmc())
        await s.available()
        await s.delete(Cluster, "edge")
        await s.plane.gone(Cluster, Key(NAMESPACE, "edge"), 600)
        await s.plane.settle(quiet=60)
        assert await s.inventory() == {"PersistentVolumeClaim": {"etcd-data-kmc-edge-etcd-0"}}


@virtual
async def test_deletion_takes_the_volumes_too_if_the_user_said_so() -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    async with stage() as s:
        await s.have(
            kmc(
                storage={"type": "etcd", "etcd": {"autoDeletePVCs": True}},
                persistence={"type": "pvc", "autoDeletePVCs": True, "persistentVolumeClaim": claim},
            )
        )
        await s.available()
        assert await s.names(CLAIM) == {"etcd-data-kmc-edge-etcd-0", "data-kmc-edge-0"}
        await s.delete(Cluster, "edge")
        await s.plane.gone(Cluster, Key(NAMESPACE, "edge"), 600)
        await s.plane.settle(quiet=60)
        assert await s.inventory() == {}


@virtual
async def test_ingress_monitoring_and_defragmentation_come_and_go_with_their_settings() -> None:
    ingress = {"apiHost": "api.edge.example", "konnectivityHost": "kon.edge.example", "annotations": {"a": "b"}}
    async with stage() as s:
        await s.have(
            kmc(
                version="v1.34.1+k0s.0",
                ingress=ingress,
                monitoring={"enabled": True},
                storage={"type": "etcd", "etcd": {"defragJob": {"enabled": True}}},
            )
        )
        await s.available()
        assert await s.names(INGRESS) == {"kmc-edge"}
        assert await s.names(CRON_JOB) == {"kmc-edge-defrag"}
        assert {"kmc-edge-ingress-certs", "edge-ingress-haproxy"} <= await s.names(SECRET)
        assert {"kmc-edge-ingress", "kmc-prometheus-edge-config"} <= await s.names(CONFIG_MAP)
        await s.patch(
            Cluster,
            "edge",
            {
                "spec": {
                    "ingress": {"deploy": False},
                    "monitoring": {"enabled": False},
                    "storage": {"etcd": {"defragJob": {"enabled": False}}},
                }
            },
        )
        await s.plane.settle(quiet=60)
        assert await s.names(INGRESS) | await s.names(CRON_JOB) == set()
        assert "kmc-prometheus-edge-config" not in await s.names(CONFIG_MAP)


@virtual
async def test_a_long_name_is_shortened_everywhere_but_in_the_kubeconfig() -> None:
    name = "edge-" + "x" * 55
    async with stage() as s:
        await s.have(kmc(name))
        await s.available(name)
        assert await s.names(STATEFUL_SET) == {Names(name).statefulset, Names(name).etcd}
        assert f"{name}-kubeconfig" in await s.names(SECRET)
        await s.delete(Cluster, name)
        await s.plane.gone(Cluster, Key(NAMESPACE, name), 600)


@virtual
async def test_a_certificate_that_is_lost_while_the_control_plane_runs_is_not_made_again() -> None:
    async with stage() as s:
        await s.have(kmc())
        await s.available()
        await s.delete(SECRET, "edge-ca")
        await s.patch(Cluster, "edge", {"metadata": {"labels": {"a": "b"}}})
        found = await s.until(
            Cluster, "edge", lambda each: not condition.is_true(each.status.conditions, "CertificatesAvailable")
        )
        said = present(condition.find(found.status.conditions, "CertificatesAvailable"))
        assert "restore it from a backup" in said["message"]
        assert "edge-ca" not in await s.names(SECRET)


@virtual
async def test_certificates_are_renewed_and_k0s_gets_its_new_one() -> None:
    async with stage() as s:
        await s.have(kmc())
        await s.available()
        pod = (await s.get(POD, "kmc-edge-0")).uid
        authority = await s.get(SECRET, "edge-etcd")
        ca = KeyPair(secret_data(authority, "tls.crt"), secret_data(authority, "tls.key"))
        old = sign_client(ca, "apiserver-etcd-client", now=s.plane.clock.now() - 25 * 86400, days=30)
        data = {"tls.crt": old.certificate, "tls.key": old.key}
        body = {"data": {name: base64.b64encode(value).decode() for name, value in data.items()}}
        await s.patch(SECRET, "edge-apiserver-etcd-client", body)
        await s.until(
            SECRET,
            "edge-apiserver-etcd-client",
            lambda each: secret_data(each, "tls.crt") != old.certificate,
            what="a new certificate",
        )
        await s.until(POD, "kmc-edge-0", lambda each: each.uid != pod, what="a new Pod")
        await s.available()


@virtual
async def test_a_patch_that_does_not_fit_is_reported_and_the_rest_goes_on_when_it_is_mended() -> None:
    patch = {
        "target": {"kind": "StatefulSet", "component": "control-plane"},
        "patch": {"type": "json", "content": '[{"op": "remove", "path": "/spec/nothing"}]'},
    }
    async with stage() as s:
        await s.have(kmc(patches=[patch]))
        found = await s.until(
            Cluster,
            "edge",
            lambda each: (condition.find(each.status.conditions, "Available") or {}).get("reason") == "PatchFailed",
        )
        said = present(condition.find(found.status.conditions, "Available"))
        assert "spec.patches[0]" in said["message"]
        await s.patch(Cluster, "edge", {"spec": {"patches": []}})
        await s.available()


@virtual
async def test_nats_needs_no_other_pods() -> None:
    async with stage() as s:
        await s.have(kmc(storage={"type": "nats"}))
        await s.available()
        assert await s.names(STATEFUL_SET) == {"kmc-edge"}
        assert "kmc-edge-nats-token" in await s.names(SECRET)
        with pytest.raises(Invalid, match="NATS can't change"):
            await s.patch(Cluster, "edge", {"spec": {"replicas": 3}})


@virtual
async def test_an_api_server_that_does_not_answer_is_reported() -> None:
    async with stage() as s:
        s.answers = False
        await s.have(kmc())
        found = await s.until(
            Cluster,
            "edge",
            lambda each: (
                (condition.find(each.status.conditions, "Available") or {}).get("reason") == "APIServerNotReachable"
            ),
        )
        assert not condition.is_true(found.status.conditions, "ControlPlaneFunctional")
        s.answers = True
        await s.available()


@virtual
async def test_pods_that_can_not_start_are_named() -> None:
    async with stage() as s:
        s.sick.add("kmc-edge-0")
        await s.have(kmc())
        found = await s.until(
            Cluster,
            "edge",
            lambda each: (condition.find(each.status.conditions, "Available") or {}).get("reason") == "NoReadyReplicas",
        )
        said = present(condition.find(found.status.conditions, "Available"))
        assert "StatefulSet kmc-edge" in said["message"]


# -- in another cluster ----------------------------------------------------------------------------------------------


def host_secret(server: str = HOST) -> dict[str, Any]:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "host", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "host", "user": "me"}}],
        "current-context": "c",
    }
    data = {"value": base64.b64encode(yaml.dump(content).encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "host"}, "data": data}


REMOTE: dict[str, Any] = {"remoteHostCluster": {"kubeconfigRef": {"name": "host", "namespace": NAMESPACE}}}


@virtual
async def test_pods_run_in_another_cluster_and_the_kubeconfig_stays_here() -> None:
    async with stage(host=True) as s:
        await s.have(kmc(**REMOTE))
        found = await s.until(
            Cluster,
            "edge",
            lambda each: (
                (condition.find(each.status.conditions, "Available") or {}).get("reason") == "WaitingForHostCluster"
            ),
        )
        said = present(condition.find(found.status.conditions, "Available"))
        assert "Secret default/host" in said["message"]
        await s.have(host_secret())
        await s.available()
        assert await s.names(POD) == set()
        assert await s.names(POD, s.host) == {"kmc-edge-0", "kmc-edge-etcd-0"}
        assert {"edge-ca", "edge-kubeconfig"} <= await s.names(SECRET)
        assert "edge-ca" in await s.names(SECRET, s.host)
        assert "edge-kubeconfig" not in await s.names(SECRET, s.host)
        await s.delete(Cluster, "edge")
        await s.plane.gone(Cluster, Key(NAMESPACE, "edge"), 600)
        await s.plane.settle(quiet=60)
        assert await s.inventory(s.host) == {"PersistentVolumeClaim": {"etcd-data-kmc-edge-etcd-0"}}
        assert await s.inventory() == {"Secret": {"host"}}
