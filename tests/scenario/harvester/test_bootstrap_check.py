"""checkStrategy: ssh. The VM is asked whether its bootstrap succeeded, with a key pair of the cluster."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import yaml

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine
from homeport.app.machine.console import read_kept
from homeport.app.machine.find import find_machine
from homeport.client.protocol import Key
from homeport.providers.harvester.infracluster.resource import POD, SECRET
from homeport.providers.harvester.machine.sshkey import SUCCESS_FILE
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import AddressLoss
from homeport.sim.machine.vm import Machine as Guest
from homeport.sim.machine.workload.kind import NODE
from present import present
from scenario.harvester import manifest
from scenario.harvester.site import Site, condition_of, harvester_site

NAME = "one"
CONDITION = "BootstrapExecSucceeded"


def machine(name: str, user_data: str, **more: Any) -> list[dict[str, Any]]:
    made = manifest.bare_machine(NAME, name, **more)
    made[0]["metadata"]["name"] = made[2]["spec"]["bootstrap"]["dataSecretName"] = f"{name}-data"
    made[0]["stringData"]["value"] = user_data
    return made


async def _user_data(site: Site, name: str) -> dict[str, Any]:
    secret = await site.infra.get(SECRET, Key(manifest.NAMESPACE, f"{name}-cloud-init"))
    found: dict[str, Any] = yaml.safe_load(base64.b64decode(secret["data"]["userdata"]))
    return found


async def _keys(site: Site, name: str = f"{NAME}-ssh-keys") -> dict[str, str]:
    secret = await site.client.get(SECRET, Key(manifest.NAMESPACE, name))
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def _guest(site: Site, name: str) -> Guest:
    return present(site.fleet.find(name))


async def _up(site: Site) -> None:
    await site.have(*manifest.cluster_objects(NAME, 1, 0))
    await site.running(NAME, 1)


@virtual
async def test_a_machine_is_provisioned_when_its_bootstrap_has_succeeded_and_not_before() -> None:
    async with harvester_site() as site:
        await _up(site)
        await site.have(*machine("pet", "#cloud-config\nssh_pwauth: false\n"))
        words = ("BootstrapNotFinished", "Node pet has not joined", f"{SUCCESS_FILE} does not exist", "cloud-init")
        await site.condition(KubevirtMachine, "pet", CONDITION, "False", *words, timeout=300)
        found = await site.client.get(KubevirtMachine, Key(manifest.NAMESPACE, "pet"))
        assert found.spec.provider_id  # for whoever looks for the cause
        assert found.status.addresses
        assert not found.status.initialization.provisioned
        await site.condition(KubevirtMachine, "pet", "VMProvisioned", "False", *words[:1])
        await site.until(Machine, "pet", lambda m: m.status.phase == "Provisioning", 60)
        _guest(site, "pet").disk.write(SUCCESS_FILE, b"success\n")
        await site.condition(KubevirtMachine, "pet", CONDITION, "True", "Succeeded", timeout=25)
        await site.until(KubevirtMachine, "pet", lambda m: m.status.ready, 5)
        # A restart empties /run, and another plane knows nothing of what was asked before.
        _guest(site, "pet").disk.wipe("/run")
        await site.restart()
        await asyncio.sleep(600)
        found = await site.client.get(KubevirtMachine, Key(manifest.NAMESPACE, "pet"))
        assert found.status.ready
        assert condition_of(found, CONDITION)["status"] == "True"


@virtual
async def test_the_key_opens_one_file_and_its_secret_goes_with_the_cluster() -> None:
    async with harvester_site() as site:
        await _up(site)
        listed = "#cloud-config\nusers:\n  - name: admin\n    groups: [wheel]\nruncmd:\n- true\n"
        await site.have(*machine("pet", listed))
        await site.condition(KubevirtMachine, "pet", CONDITION, "False", "BootstrapNotFinished", timeout=300)
        keys = await _keys(site)
        data = await _user_data(site, "pet")
        assert [each["name"] for each in data["users"]] == ["capk", "admin"]
        user = data["users"][0]
        assert user["ssh_authorized_keys"] == [f'restrict,command="cat {SUCCESS_FILE}" {keys["pub"].strip()}']
        assert not {"sudo", "groups"} & set(user)
        (plane,) = [each for each in await site.all(Machine) if each.metadata.name != "pet"]
        assert (await _user_data(site, plane.metadata.name))["users"][0] == "default"
        for each in (await site.infra.list(SECRET)).items:
            assert keys["key"][40:80] not in str({k: base64.b64decode(v) for k, v in (each.get("data") or {}).items()})
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        await site.plane.gone(SECRET, Key(manifest.NAMESPACE, f"{NAME}-ssh-keys"), 60)


@virtual
async def test_a_vm_that_ssh_does_not_reach_counts_once_its_node_has_joined() -> None:
    async with harvester_site() as site:
        await _up(site)
        await site.have(*machine("pet", "#cloud-config\n"))
        await site.condition(KubevirtMachine, "pet", CONDITION, "False", "BootstrapNotFinished", timeout=300)
        _guest(site, "pet").host.unlisten(22)
        words = ("SSHUnavailable", "no SSH connection to", "check that port 22 of the VM is reachable")
        await site.condition(KubevirtMachine, "pet", CONDITION, "False", *words, timeout=60)
        deaf = _Deaf()
        _guest(site, "pet").host.listen(22, deaf)
        await site.condition(KubevirtMachine, "pet", CONDITION, "False", "no answer in time", timeout=60)
        (cluster,) = site.fleet.clusters()
        await cluster.client().create({"metadata": {"name": "pet"}}, kind=NODE)
        await site.condition(KubevirtMachine, "pet", CONDITION, "True", "Succeeded", timeout=60)
        await site.until(KubevirtMachine, "pet", lambda m: m.status.ready, 5)
        deaf.close()


@virtual
async def test_a_vm_that_loses_its_address_before_it_was_asked_says_so() -> None:
    async with harvester_site() as site:
        await _up(site)
        site.fault(AddressLoss(seconds=120), kind="vm", entity="pet")
        await site.have(*machine("pet", "#cloud-config\n"))
        await site.condition(KubevirtMachine, "pet", CONDITION, "False", "does not exist on", timeout=110)
        words = ("BootstrapNotFinished", "it reports no address, so that it can't be asked over SSH")
        await site.condition(KubevirtMachine, "pet", CONDITION, "False", *words, timeout=600)


class _Deaf:
    """Takes connections and never says a word."""

    def __init__(self) -> None:
        self._held: list[Any] = []

    async def accept(self, sock: Any, source: str) -> None:
        self._held.append(sock)

    def close(self) -> None:
        for each in self._held:
            each.close()


@virtual
async def test_machines_that_can_not_be_asked_are_not_held_up() -> None:
    async with harvester_site() as site:
        await _up(site)
        await site.have(*machine("flow", "#cloud-config\nusers: [default]\n"))
        words = ("WaitingForNode", "Node flow has not joined", "no user for that could be added")
        await site.condition(KubevirtMachine, "flow", CONDITION, "False", *words, timeout=300)
        await site.until(KubevirtMachine, "flow", lambda m: m.status.ready)
        assert (await _user_data(site, "flow")) == {"users": ["default"]}
        unchecked = machine("cat", "#cloud-config\n", virtualMachineBootstrapCheck={"checkStrategy": "none"})
        await site.have(*unchecked)
        await site.condition(KubevirtMachine, "cat", CONDITION, "True", "BootstrapCheckDisabled", timeout=300)
        assert "users" not in (await _user_data(site, "cat") or {})


@virtual
async def test_a_key_pair_of_the_user_is_used_and_checked() -> None:
    async with harvester_site() as site:
        await _up(site)
        await site.patch(KubevirtCluster, NAME, {"spec": {"sshKeys": {"dataSecretName": "mine"}}})
        await site.have(*machine("pet", f"#cloud-config\nruncmd:\n- echo success > {SUCCESS_FILE}\n"))
        words = ("spec.sshKeys.dataSecretName", "Secret default/mine does not exist", "or remove spec.sshKeys")
        await site.condition(KubevirtMachine, "pet", "Ready", "False", *words, timeout=600)
        keys = await _keys(site)
        meta = {"name": "mine", "namespace": manifest.NAMESPACE}
        await site.have({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"pub": keys["pub"]}})
        wrong = ("Secret default/mine has no SSH key pair at `pub` and `key`",)
        await site.condition(KubevirtMachine, "pet", "Ready", "False", *wrong, timeout=700)
        await site.patch(SECRET, "mine", {"stringData": keys})
        await site.condition(KubevirtMachine, "pet", CONDITION, "True", "Succeeded", timeout=900)


NEWER = """#cloud-config
write_files:
- path: /run/kubeadm.yaml
  content: |
    apiVersion: kubeadm.k8s.io/v1beta3
    kind: ClusterConfiguration
    kubernetesVersion: v1.99.0
runcmd: [kubeadm init --config /run/kubeadm.yaml]
"""


@virtual
async def test_a_machine_whose_bootstrap_fails_quotes_the_console_of_its_vm() -> None:
    """As KubeVirt keeps it: the log of a container in the Pod of the VM."""
    async with harvester_site() as site:
        await _up(site)
        await site.have(*machine("pet", NEWER))
        words = (
            "KubeadmFailed",
            "Node pet has not joined the cluster yet",
            "Its console says",
            "Kubelet version is lower",
        )
        await site.condition(KubevirtMachine, "pet", CONDITION, "False", *words, timeout=600)
        [pod] = [each for each in (await site.infra.list(POD)).items if "pet" in each.name]
        assert [each["name"] for each in pod["spec"]["containers"]] == ["compute", "guest-console-log"]
        found = await find_machine(site.client, Key(manifest.NAMESPACE, "pet"))
        kept = await read_kept(site.client, found, site.dial)
        assert kept == _guest(site, "pet").console.text().splitlines()
        # Credentials that lead nowhere: nothing is known, and the command says where else to look.
        await site.patch(KubevirtCluster, NAME, {"spec": {"infraClusterSecretRef": {"name": "gone"}}})
        assert await read_kept(site.client, found, site.dial) == []
