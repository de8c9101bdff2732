"""The first control plane machine: certificates, lock and data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.runtime.testing import virtual
from reconcile.bootstrap.bootstrap_kit import CLUSTER, bench, condition, files, kubeadm


@virtual
async def test_nothing_is_made_before_the_infrastructure_of_the_cluster_is_there() -> None:
    async with bench() as b:
        await b.cluster(provisioned=False)
        key = await b.machine("cp", control_plane=True)
        done = await b.reconcile(key)
        assert done.wait is not None
        assert done.wait.after is None  # the Cluster wakes it
        config = await b.get("KubeadmConfig", key)
        assert condition(config, "DataSecretAvailable") == (
            "False",
            "NotAvailable",
            "waiting for the infrastructure of Cluster 'one'",
        )
        assert condition(config, "Ready")[:2] == ("False", "NotReady")
        assert condition(config, "Paused")[:2] == ("False", "NotPaused")
        with pytest.raises(NotFound):
            await b.data(key)


@virtual
async def test_a_control_plane_machine_gets_certificates_lock_and_data_in_seven_writes() -> None:
    async with bench() as b:
        await b.cluster()
        key = await b.machine("cp", {"verbosity": 5, "preKubeadmCommands": ["date"]}, control_plane=True)
        done = await b.reconcile(key)
        assert done.wait is None
        assert len(done.written) == 7  # four certificates, the lock, the data, the status
        lock = await b.get("ConfigMap", Key("default", "one-lock"))
        assert json.loads(lock["data"]["lock-information"]) == {"machineName": "cp"}
        assert lock["metadata"]["ownerReferences"][0]["kind"] == "Cluster"

        secret = await b.get("Secret", key)
        assert secret["type"] == "cluster.x-k8s.io/secret"
        assert secret["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "one"}
        owner = secret["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("KubeadmConfig", "cp", True)
        assert set(secret["data"]) == {"value", "format"}

        text = await b.data(key)
        found = kubeadm(text)
        assert found["ClusterConfiguration"]["apiVersion"] == "kubeadm.k8s.io/v1beta4"
        assert found["ClusterConfiguration"]["controlPlaneEndpoint"] == "10.1.2.3:6443"
        assert found["ClusterConfiguration"]["kubernetesVersion"] == "v1.33.1"
        assert found["ClusterConfiguration"]["networking"] == {
            "dnsDomain": "example.local",
            "podSubnet": "10.0.0.0/16,fd00::/48",
            "serviceSubnet": "10.96.0.0/12",
        }
        folder = "/etc/kubernetes/pki"
        assert {path for path in files(text) if path.startswith(folder)} == {
            f"{folder}/{name}"
            for name in (
                *("ca.crt", "ca.key", "etcd/ca.crt", "etcd/ca.key"),
                *("front-proxy-ca.crt", "front-proxy-ca.key", "sa.pub", "sa.key"),
            )
        }
        config = await b.get("KubeadmConfig", key)
        assert config["status"]["dataSecretName"] == "cp"
        assert config["status"]["initialization"] == {"dataSecretCreated": True}
        assert config["status"]["observedGeneration"] == config["metadata"]["generation"]
        for kind in ("Ready", "DataSecretAvailable", "CertificatesAvailable"):
            assert condition(config, kind)[0] == "True"


@virtual
async def test_a_second_look_writes_nothing() -> None:
    async with bench() as b:
        await b.cluster()
        key = await b.machine("cp", control_plane=True)
        await b.reconcile(key)
        done = await b.reconcile(key)
        assert done.wait is None
        assert done.written == ()


@virtual
async def test_only_one_machine_initializes_and_the_other_says_which() -> None:
    async with bench() as b:
        await b.cluster()
        first, second = await b.machine("cp-a", control_plane=True), await b.machine("cp-b", control_plane=True)
        await b.reconcile(first)
        done = await b.reconcile(second)
        assert done.wait is not None
        assert "cp-a" in done.wait.message
        assert done.wait.after is None  # the lock, the Machine and the Cluster wake it
        with pytest.raises(NotFound):
            await b.data(second)


@virtual
async def test_a_lock_whose_machine_is_gone_goes_to_the_next() -> None:
    async with bench() as b:
        await b.cluster()
        first, second = await b.machine("cp-a", control_plane=True), await b.machine("cp-b", control_plane=True)
        await b.reconcile(first)
        await b.client.delete(b.plane.resource({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine"}), first)
        done = await b.reconcile(second)
        assert done.wait is None
        lock = await b.get("ConfigMap", Key("default", "one-lock"))
        assert json.loads(lock["data"]["lock-information"]) == {"machineName": "cp-b"}
        assert "InitConfiguration" in kubeadm(await b.data(second))


@virtual
async def test_the_lock_is_given_back_when_the_control_plane_is_initialized() -> None:
    async with bench() as b:
        await b.cluster()
        key = await b.machine("cp", control_plane=True)
        await b.reconcile(key)
        status = {"status": {"initialization": {"controlPlaneInitialized": True}}}
        await b.patch("Cluster", CLUSTER, status, status=True)
        await b.reconcile(key)
        with pytest.raises(NotFound):
            await b.get("ConfigMap", Key("default", "one-lock"))


@virtual
async def test_with_a_control_plane_provider_its_certificates_are_awaited_not_made() -> None:
    async with bench() as b:
        await b.cluster(managed=True)
        key = await b.machine("cp", control_plane=True)
        done = await b.reconcile(key)
        assert done.wait is not None
        assert done.wait.after is None  # certificates are watched
        config = await b.get("KubeadmConfig", key)
        assert condition(config, "CertificatesAvailable")[:2] == ("Unknown", "InternalError")
        assert "'one-ca' does not exist" in condition(config, "Ready")[2]
        pairs = await b.certificates()
        done = await b.reconcile(key)
        assert done.wait is None
        assert files(await b.data(key))["/etc/kubernetes/pki/ca.crt"] == pairs["ca"].certificate.decode()
        config = await b.get("KubeadmConfig", key)
        assert condition(config, "CertificatesAvailable")[0] == "True"


@virtual
async def test_an_external_etcd_gets_the_certificates_that_the_user_brought() -> None:
    async with bench() as b:
        await b.cluster(managed=True)
        external = {
            "endpoints": ["https://10.0.0.1:2379"],
            "caFile": "/etc/etcd/ca.crt",
            "certFile": "/etc/etcd/client.crt",
            "keyFile": "/etc/etcd/client.key",
        }
        key = await b.machine("cp", {"clusterConfiguration": {"etcd": {"external": external}}}, control_plane=True)
        await b.certificates("ca", "sa", "proxy", "etcd")
        done = await b.reconcile(key)
        assert done.wait is not None
        assert "one-apiserver-etcd-client" in done.wait.message
        await b.plane.have(_client_certificate(await b.get("Secret", Key("default", "one-etcd"))))
        await b.reconcile(key)
        text = await b.data(key)
        assert {"/etc/etcd/ca.crt", "/etc/etcd/client.crt", "/etc/etcd/client.key"} <= set(files(text))
        assert "/etc/kubernetes/pki/etcd/ca.key" not in files(text)
        assert kubeadm(text)["ClusterConfiguration"]["etcd"] == {"external": external}


def _client_certificate(etcd: Mapping[str, Any]) -> dict[str, Any]:
    """Any pair will do: nobody connects here."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "one-apiserver-etcd-client"},
        "data": etcd["data"],
    }


@virtual
async def test_a_paused_cluster_stops_the_config_and_says_so() -> None:
    async with bench() as b:
        await b.cluster(paused=True)
        key = await b.machine("cp", control_plane=True)
        done = await b.reconcile(key)
        assert done.wait is None
        config = await b.get("KubeadmConfig", key)
        assert condition(config, "Paused")[:2] == ("True", "Paused")
        assert "dataSecretName" not in config["status"]


@virtual
async def test_a_stop_between_secret_and_status_is_made_good() -> None:
    async with bench() as b:
        await b.cluster()
        key = await b.machine("cp", control_plane=True)
        await b.reconcile(key)
        before = await b.data(key)
        await b.patch("KubeadmConfig", key, {"status": None}, status=True)
        done = await b.reconcile(key)
        assert [resource.kind for resource, _ in done.written] == ["KubeadmConfig"]
        assert (await b.get("KubeadmConfig", key))["status"]["dataSecretName"] == "cp"
        assert await b.data(key) == before


@virtual
async def test_status_comes_back_from_the_machine_after_a_move() -> None:
    async with bench() as b:
        await b.cluster(initialized=True)
        key = await b.machine("cp", control_plane=True, data_secret="elsewhere", status={"nodeRef": {"name": "cp"}})
        done = await b.reconcile(key)
        assert done.wait is None
        status = (await b.get("KubeadmConfig", key))["status"]
        assert (status["dataSecretName"], status["initialization"]) == ("elsewhere", {"dataSecretCreated": True})


@virtual
async def test_a_secret_that_lost_its_owner_is_taken_back() -> None:
    async with bench() as b:
        await b.cluster()
        key = await b.machine("cp", control_plane=True)
        await b.reconcile(key)
        secret = await b.get("Secret", key)
        secret["metadata"]["ownerReferences"] = []
        await b.client.replace(secret, kind=b.plane.resource({"apiVersion": "v1", "kind": "Secret"}))
        await b.reconcile(key)
        owners = (await b.get("Secret", key))["metadata"]["ownerReferences"]
        assert [(each["kind"], each["controller"]) for each in owners] == [("KubeadmConfig", True)]


@virtual
async def test_data_deleted_before_anybody_read_them_are_made_again() -> None:
    async with bench() as b:
        await b.cluster()
        key = await b.machine("cp", control_plane=True)
        await b.reconcile(key)
        before = await b.data(key)
        await b.client.delete(b.plane.resource({"apiVersion": "v1", "kind": "Secret"}), key)
        await b.reconcile(key)
        assert await b.data(key) == before
