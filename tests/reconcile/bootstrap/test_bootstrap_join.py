"""Machines that join: discovery, tokens and their upkeep."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
import yaml

from homeport.bootstrap.token import SECRET
from homeport.capi.remote import pki
from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.runtime.outcome import Terminal
from homeport.runtime.testing import virtual
from reconcile.bootstrap.bootstrap_kit import CLUSTER, Bench, bench, cloud_config, condition, files, kubeadm

TTL = 900


def _left(b: Bench, token: Mapping[str, Any]) -> float:
    expiry = base64.b64decode(token["data"]["expiration"]).decode()
    return datetime.fromisoformat(expiry).timestamp() - b.plane.clock.now()


@virtual
async def test_a_worker_waits_for_the_control_plane_without_polling() -> None:
    async with bench() as b:
        await b.cluster()
        key = await b.machine("w")
        done = await b.reconcile(key)
        assert done.wait is not None
        assert done.wait.after is None
        message = condition(await b.get("KubeadmConfig", key), "DataSecretAvailable")[2]
        assert message == "waiting for the control plane of Cluster 'one' to be initialized"


@virtual
async def test_a_worker_waits_for_a_connection_and_says_why_there_is_none() -> None:
    async with bench() as b:
        await b.cluster(initialized=True)
        await b.certificates()
        key = await b.machine("w")
        done = await b.reconcile(key)
        assert done.wait is not None
        assert done.wait.reason == "WaitingForConnection"
        assert "connecting to the workload cluster" in condition(await b.get("KubeadmConfig", key), "Ready")[2]


@virtual
async def test_a_worker_gets_a_token_of_the_workload_cluster_and_the_taint() -> None:
    async with bench() as b:
        await b.cluster(initialized=True)
        pairs = await b.certificates()
        await b.connect()
        key = await b.machine("w", {"joinConfiguration": {"nodeRegistration": {"name": "{{ ds.meta_data.hostname }}"}}})
        done = await b.reconcile(key)
        assert [resource.kind for resource, _ in done.written] == ["Secret", "KubeadmConfig"]
        assert done.wait is not None
        assert done.wait.after == pytest.approx(TTL / 3)
        (token,) = await b.tokens()
        values = {name: base64.b64decode(value).decode() for name, value in token["data"].items()}
        assert token["type"] == "bootstrap.kubernetes.io/token"
        assert values["auth-extra-groups"] == "system:bootstrappers:kubeadm:default-node-token"
        assert (values["usage-bootstrap-signing"], values["usage-bootstrap-authentication"]) == ("true", "true")
        assert _left(b, token) == pytest.approx(TTL, abs=2)
        join = kubeadm(await b.data(key))["JoinConfiguration"]
        assert join["discovery"]["bootstrapToken"] == {
            "token": f"{values['token-id']}.{values['token-secret']}",
            "apiServerEndpoint": "10.1.2.3:6443",
            "caCertHashes": pki.hashes(pairs["ca"].certificate),
        }
        assert join["nodeRegistration"] == {
            "name": "{{ ds.meta_data.hostname }}",
            "taints": [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}],
        }
        assert condition(await b.get("KubeadmConfig", key), "Ready")[0] == "True"
        assert not [path for path in files(await b.data(key)) if path.startswith("/etc/kubernetes/pki")]


@virtual
async def test_a_joining_control_plane_gets_the_keys_and_no_worker_taint() -> None:
    async with bench() as b:
        await b.cluster(initialized=True, managed=True)
        await b.certificates()
        await b.connect()
        spec = {
            "joinConfiguration": {"nodeRegistration": {"taints": []}},
            "clusterConfiguration": {"certificatesDir": "/pki"},
        }
        key = await b.machine("cp", spec, control_plane=True, version="v1.29.4")
        await b.reconcile(key)
        text = await b.data(key)
        join = kubeadm(text)["JoinConfiguration"]
        assert join["apiVersion"] == "kubeadm.k8s.io/v1beta3"
        assert join["controlPlane"] == {}
        assert join["nodeRegistration"] == {"taints": []}
        assert {"/pki/ca.key", "/pki/etcd/ca.key", "/pki/sa.pub"} <= set(files(text))
        assert "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml" in cloud_config(text)["runcmd"][-1]


@virtual
async def test_a_token_is_extended_until_the_node_is_there() -> None:
    async with bench() as b:
        await b.cluster(initialized=True)
        await b.certificates()
        await b.connect()
        key = await b.machine("w")
        await b.reconcile(key)
        done = await b.reconcile(key)  # too early: nothing is asked, let alone written
        assert done.written == ()
        await asyncio.sleep(TTL / 3 + 1)
        (token,) = await b.tokens()
        assert _left(b, token) < TTL * 5 / 6
        done = await b.reconcile(key)
        assert done.wait is not None
        assert done.wait.after == pytest.approx(TTL / 3)
        (token,) = await b.tokens()
        assert _left(b, token) == pytest.approx(TTL, abs=2)
        await b.patch("Machine", key, {"status": {"nodeRef": {"name": "w"}}}, status=True)
        done = await b.reconcile(key)
        assert (done.wait, done.written) == (None, ())


@virtual
async def test_a_token_that_vanished_comes_back_as_the_machine_knows_it() -> None:
    async with bench() as b:
        await b.cluster(initialized=True)
        await b.certificates()
        await b.connect()
        key = await b.machine("w")
        await b.reconcile(key)
        (before,) = await b.tokens()
        data = await b.data(key)
        await b.workload.client().delete(SECRET, Key("kube-system", before.name))
        await asyncio.sleep(TTL / 3 + 1)
        await b.reconcile(key)
        (after,) = await b.tokens()
        assert after["data"]["token-secret"] == before["data"]["token-secret"]
        assert await b.data(key) == data


@virtual
async def test_a_pool_gets_new_data_when_half_of_its_tokens_time_is_over() -> None:
    async with bench() as b:
        await b.cluster(initialized=True)
        await b.certificates()
        await b.connect()
        key = await b.pool("p", nodes=1)
        await b.reconcile(key)
        before = await b.data(key)
        await asyncio.sleep(TTL / 3 + 1)
        await b.reconcile(key)
        assert await b.data(key) == before
        await asyncio.sleep(TTL / 3 + 1)
        done = await b.reconcile(key)
        after = await b.data(key)
        assert after != before
        assert len(await b.tokens()) == 2  # the old one is good until it ends
        assert done.wait is not None
        assert done.wait.after == pytest.approx(TTL / 3)


@virtual
async def test_a_pool_without_all_nodes_has_its_token_extended() -> None:
    async with bench() as b:
        await b.cluster(initialized=True)
        await b.certificates()
        await b.connect()
        key = await b.pool("p")
        await b.reconcile(key)
        before = await b.data(key)
        for _ in range(4):
            await asyncio.sleep(TTL / 3 + 1)
            await b.reconcile(key)
        assert await b.data(key) == before
        (token,) = await b.tokens()
        assert _left(b, token) == pytest.approx(TTL, abs=2)


@virtual
async def test_discovery_by_file_brings_the_kubeconfig_along_and_needs_no_token() -> None:
    async with bench() as b:
        await b.cluster(initialized=True)
        pairs = await b.certificates()
        user = {"exec": {"command": "/bin/login", "args": ["a"], "env": [{"name": "X", "value": "1"}]}}
        file = {"kubeConfigPath": "/etc/kubernetes/discovery.conf", "kubeConfig": {"user": user}}
        key = await b.machine("w", {"joinConfiguration": {"discovery": {"file": file}}})
        done = await b.reconcile(key)
        assert done.wait is None
        text = await b.data(key)
        kubeconfig = yaml.safe_load(files(text)["/etc/kubernetes/discovery.conf"])
        assert kubeconfig["clusters"][0]["cluster"] == {
            "server": "https://10.1.2.3:6443",
            "certificate-authority-data": base64.b64encode(pairs["ca"].certificate).decode(),
        }
        assert kubeconfig["users"][0]["user"]["exec"] == {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "/bin/login",
            "args": ["a"],
            "env": [{"name": "X", "value": "1"}],
            "provideClusterInfo": False,
            "interactiveMode": "Never",
        }
        assert kubeadm(text)["JoinConfiguration"]["discovery"] == {
            "file": {"kubeConfigPath": "/etc/kubernetes/discovery.conf"}
        }


@virtual
async def test_a_token_of_the_user_is_used_and_none_is_made() -> None:
    async with bench() as b:
        await b.cluster(initialized=True)
        await b.certificates()
        await b.connect()
        given = {"token": "abcdef.0123456789abcdef", "caCertHashes": ["sha256:" + "0" * 64]}
        key = await b.machine("w", {"joinConfiguration": {"discovery": {"bootstrapToken": given}}})
        await b.reconcile(key)
        found = kubeadm(await b.data(key))["JoinConfiguration"]["discovery"]["bootstrapToken"]
        assert found == {**given, "apiServerEndpoint": "10.1.2.3:6443"}
        assert await b.tokens() == []


@virtual
async def test_a_worker_with_a_control_plane_section_is_refused_until_it_changes() -> None:
    async with bench() as b:
        await b.cluster(initialized=True)
        await b.certificates()
        await b.connect()
        key = await b.machine("w", {"joinConfiguration": {"controlPlane": {}}})
        with pytest.raises(Terminal, match=r"joinConfiguration\.controlPlane is set, but Machine 'w' is a worker"):
            await b.reconcile(key)
        assert await b.tokens() == []


@virtual
async def test_files_and_passwords_come_from_secrets_and_templates_know_the_control_planes_version() -> None:
    async with bench() as b:
        await b.cluster(initialized=True, managed=True)
        await b.certificates()
        await b.connect()
        machine = {"spec": {"infrastructureRef": {"apiGroup": "example.com", "kind": "X", "name": "x"}}}
        await b.plane.have(
            {
                "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
                "kind": "KubeadmControlPlane",
                "metadata": {"name": "one-cp"},
                "spec": {"version": "v1.34.2", "machineTemplate": machine},
            }
        )
        spec = {
            "files": [
                {"path": "/a", "contentFrom": {"secret": {"name": "things", "key": "text"}}, "permissions": "0600"},
                {"path": "/b", "contentFrom": {"secret": {"name": "things", "key": "raw"}}},
                {"path": "/c", "content": "{{ .controlPlane.version }}", "contentFormat": "Template"},
            ],
            "users": [{"name": "joe", "passwdFrom": {"secret": {"name": "things", "key": "hash"}}}],
        }
        key = await b.machine("w", spec)
        done = await b.reconcile(key)
        assert done.wait is not None
        assert (
            done.wait.message == "spec.files[0].contentFrom refers to Secret 'things', which does not exist: create it"
        )
        assert await b.tokens() == []
        values = {"text": b"hello", "raw": b"\x00\xff", "hash": b"$6$x\n"}
        data = {name: base64.b64encode(value).decode() for name, value in values.items()}
        await b.plane.have({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "things"}, "data": data})
        await b.reconcile(key)
        config = cloud_config(await b.data(key))
        found = {each["path"]: each for each in config["write_files"]}
        assert found["/a"] == {"path": "/a", "permissions": "0600", "content": "hello\n"}
        assert found["/b"] == {"path": "/b", "encoding": "base64", "content": data["raw"]}
        assert found["/c"]["content"] == "v1.34.2\n"
        assert config["users"] == [{"name": "joe", "passwd": "$6$x"}]


@virtual
async def test_no_secret_shows_in_status_or_log() -> None:
    async with bench() as b:
        await b.cluster(initialized=True)
        pairs = await b.certificates()
        await b.connect()
        key = await b.machine("cp", control_plane=True)
        await b.reconcile(key)
        (token,) = await b.tokens()
        shown = str(await b.get("KubeadmConfig", key)) + b.plane.logs.text()
        assert base64.b64decode(token["data"]["token-secret"]).decode() not in shown
        assert pairs["ca"].key.decode().splitlines()[1] not in shown
        with pytest.raises(NotFound):
            await b.get("ConfigMap", Key(CLUSTER.namespace, "one-lock"))
