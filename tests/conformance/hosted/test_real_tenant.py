"""A TenantControlPlane with the real etcd, kube-apiserver, kube-controller-manager and kube-scheduler.

The programs run with the very flags and files of the Pod template. kubectl and kubeadm judge the result.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from homeport.api.steward.v1alpha1 import DataStore, TenantControlPlane
from homeport.client.protocol import Key, MergePatch
from homeport.hosted.definition import definitions
from homeport.hosted.etcd.dial import connect
from homeport.hosted.flavour import STEWARD
from homeport.hosted.install import install_tenants
from homeport.runtime.testing import Plane, plane
from realetcd import RealEtcd
from realkube import find_binaries, free_port
from realtenant import SECRET, RealPods, missing

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing() or "there"), pytest.mark.timeout(300)]

KEY = Key("default", "demo")
READY = 120.0


def datastore(etcd: RealEtcd, name: str = "default") -> dict[str, Any]:
    def content(data: bytes) -> dict[str, str]:
        return {"content": base64.b64encode(data).decode()}

    return {
        "apiVersion": "steward.butlerlabs.dev/v1alpha1",
        "kind": "DataStore",
        "metadata": {"name": name, "labels": {"homeport.dev/datastore": "true"}},
        "spec": {
            "driver": "etcd",
            "endpoints": [etcd.endpoint],
            "tlsConfig": {
                "certificateAuthority": {
                    "certificate": content(etcd.ca.certificate),
                    "privateKey": content(etcd.ca.key),
                },
                "clientCertificate": {
                    "certificate": content(etcd.root.certificate),
                    "privateKey": content(etcd.root.key),
                },
            },
        },
    }


def tenant(port: int, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "steward.butlerlabs.dev/v1alpha1",
        "kind": "TenantControlPlane",
        "metadata": {"name": "demo"},
        "spec": {
            "controlPlane": {"deployment": {"replicas": 1}, "service": {"serviceType": "LoadBalancer"}},
            "kubernetes": {"version": "v1.37.1", "kubelet": {"cgroupfs": "systemd"}},
            "networkProfile": {"port": port},
            "addons": {"coreDNS": {}, "kubeProxy": {}},
            **spec,
        },
    }


class Site:
    def __init__(self, p: Plane, etcd: RealEtcd, pods: RealPods, folder: Path) -> None:
        self.p, self.etcd, self.pods, self.folder = p, etcd, pods, folder
        self.port = free_port()
        found = find_binaries()
        assert not isinstance(found, str)
        self.programs = found

    async def ready(self, state: str = "Ready", version: str = "v1.37.1") -> TenantControlPlane:
        def is_ready(found: TenantControlPlane) -> bool:
            known = found.status.kubernetes_resources.version
            return (known.status, known.version) == (state, version)

        found: TenantControlPlane = await self.p.until(TenantControlPlane, KEY, is_ready, READY)
        return found

    async def kubeconfig(self, file: str = "admin.conf") -> Path:
        secret = await self.p.client.get(SECRET, Key("default", "demo-admin-kubeconfig"))
        path = self.folder / file
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(secret["data"][file]))
        return path

    async def run(self, program: str, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        kubeconfig = await self.kubeconfig()
        env = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(self.folder)}
        return await asyncio.to_thread(
            subprocess.run,
            [str(self.programs[program]), *args],
            input=stdin, capture_output=True, text=True, env=env, timeout=90, check=False,
        )  # fmt: skip

    def get(self, path: str, token: str = "") -> tuple[int, bytes]:
        """One request, without a client certificate."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    async def kubectl(self, *args: str, stdin: str = "") -> str:
        found = await self.run("kubectl", *args, stdin=stdin)
        assert found.returncode == 0, found.stderr
        return found.stdout


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    with RealEtcd() as etcd:
        async with plane(lambda p: install_tenants(p.manager, STEWARD), crds=definitions(STEWARD)) as p:
            pods = RealPods(p)
            running = asyncio.create_task(pods.run())
            try:
                await p.have(datastore(etcd))
                yield Site(p, etcd, pods, folder)
            finally:
                running.cancel()
                await asyncio.wait({running})


async def test_a_real_control_plane_lives_from_creation_to_deletion(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.p.have(tenant(s.port))
        found = await s.ready()
        assert found.status.control_plane_endpoint == f"127.0.0.1:{s.port}"
        assert found.status.storage.setup is not None
        assert found.status.storage.setup.schema == "default_demo"

        # kubectl as the administrator
        assert "kube-system" in await s.kubectl("get", "namespaces", "-o", "name")
        assert "coredns" in await s.kubectl("-n", "kube-system", "get", "deployments", "-o", "name")
        assert "kube-proxy" in await s.kubectl("-n", "kube-system", "get", "daemonsets", "-o", "name")
        dns = json.loads(await s.kubectl("-n", "kube-system", "get", "service", "kube-dns", "-o", "json"))
        assert dns["spec"]["clusterIP"] == "10.96.0.10"

        # a token, with which kubeadm finds and trusts the cluster, without a credential before
        token = "abcdef.0123456789abcdef"
        made = await s.run("kubeadm", "token", "create", token, "--print-join-command")
        assert made.returncode == 0, made.stderr
        assert f"kubeadm join 127.0.0.1:{s.port} --token {token} --discovery-token-ca-cert-hash sha256:" in made.stdout
        # kube-controller-manager signs cluster-info with it, and everybody may read that
        signature = "--for=jsonpath={.data.jws-kubeconfig-abcdef}"
        await s.kubectl("wait", signature, "-n", "kube-public", "configmap/cluster-info", "--timeout=60s")
        status, body = await asyncio.to_thread(s.get, "/api/v1/namespaces/kube-public/configmaps/cluster-info")
        assert status == 200
        assert "jws-kubeconfig-abcdef" in json.loads(body)["data"]
        assert (await asyncio.to_thread(s.get, "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"))[0] == 403
        joined = await s.run(
            "kubeadm", "join", f"127.0.0.1:{s.port}", "--token", token, "--dry-run",
            "--discovery-token-ca-cert-hash", made.stdout.split("--discovery-token-ca-cert-hash ")[1].split()[0],
            "--ignore-preflight-errors=all", "--node-name=worker",
        )  # fmt: skip
        assert '[preflight] Reading configuration from the "kubeadm-config" ConfigMap' in joined.stdout, joined

        # what the token may do, and what not
        assert (await asyncio.to_thread(s.get, "/api/v1/namespaces/kube-system/configmaps/kubeadm-config", token))[
            0
        ] == 200
        assert (await asyncio.to_thread(s.get, "/api/v1/secrets", token))[0] == 403

        # controllers and scheduler work: a Deployment gets Pods, which wait for a node
        await s.kubectl("create", "deployment", "web", "--image=web")
        await s.kubectl("wait", "--for=jsonpath={.status.replicas}=1", "deployment/web", "--timeout=60s")
        await s.kubectl("wait", "--for=condition=PodScheduled=false", "pod", "-l", "app=web", "--timeout=60s")

        await s.p.client.delete(TenantControlPlane, KEY)
        await s.p.gone(TenantControlPlane, KEY, READY)
        async with connect(s.etcd.access) as root:
            assert await root.count(b"/default_demo/") == 0
            assert await root.users() == ["root"]
            assert await root.count(b"/homeport.dev/") == 0


async def test_a_control_plane_sleeps_and_wakes_with_its_data(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.p.have(tenant(s.port))
        await s.ready()
        await s.kubectl("create", "configmap", "kept", "--from-literal=a=b")
        sleep = {"spec": {"controlPlane": {"deployment": {"replicas": 0}}}}
        await s.p.client.patch(TenantControlPlane, KEY, MergePatch(sleep))
        await s.ready("Sleeping")
        sleep["spec"]["controlPlane"]["deployment"]["replicas"] = 1
        await s.p.client.patch(TenantControlPlane, KEY, MergePatch(sleep))
        await s.ready()
        assert "a: b" in await s.kubectl("get", "configmap", "kept", "-o", "yaml")


async def test_data_moves_to_another_datastore_and_the_old_one_keeps_nothing(tmp_path: Path) -> None:
    with RealEtcd("other") as other:
        async with site(tmp_path) as s:
            await s.p.have(datastore(other, "other"), tenant(s.port))
            await s.ready()
            await s.kubectl("create", "configmap", "kept", "--from-literal=a=b")
            await s.p.client.patch(TenantControlPlane, KEY, MergePatch({"spec": {"dataStore": "other"}}))
            await s.p.until(
                TenantControlPlane,
                KEY,
                lambda found: (
                    found.status.storage.data_store_name == "other"
                    and found.status.kubernetes_resources.version.status == "Ready"
                ),
                READY,
            )
            assert "a: b" in await s.kubectl("get", "configmap", "kept", "-o", "yaml")
            await s.kubectl("create", "configmap", "new", "--from-literal=a=b")
            await s.p.until(DataStore, Key("", "default"), lambda found: not found.status.used_by, READY)
            async with connect(s.etcd.access) as root:
                assert await root.count(b"/default_demo/") == 0
                assert await root.users() == ["root"]
            async with connect(other.access) as root:
                assert await root.count(b"/default_demo/") > 50


async def test_blocked_writes_are_refused_for_users_alone(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.p.have(tenant(s.port, writePermissions={"blockCreation": True}))
        await s.ready("WriteLimited")
        deadline = time.monotonic() + 60
        while True:  # a policy takes a moment to be in force
            made = await s.run("kubectl", "create", "configmap", "new")
            if made.returncode:
                break
            assert time.monotonic() < deadline
            await s.run("kubectl", "delete", "configmap", "new")
        assert "write-limited" in made.stderr
        await s.p.client.patch(TenantControlPlane, KEY, MergePatch({"spec": {"writePermissions": None}}))
        await s.ready("Ready")
        while (await s.run("kubectl", "create", "configmap", "other")).returncode:
            assert time.monotonic() < deadline + 60
