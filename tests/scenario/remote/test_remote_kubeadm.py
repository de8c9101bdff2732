"""A machine that exists already joins a hosted control plane with kubeadm: its kubelet gets the provider ID that the
Machine looks for."""

from __future__ import annotations

import os
from pathlib import Path

from homeport.bootstrap.kubeadm.cloudconfig import render_cloud_config
from homeport.bootstrap.kubeadm.configuration import join_configuration
from homeport.bootstrap.kubeadm.userdata import UserData
from homeport.machinery import yaml
from scenario.remote.remote_plane import access, remote_plane
from scenario.remote.ssh_machine import SshMachine, ssh_machines

CONFIGURATION = "run/kubeadm/kubeadm-join-config.yaml"
JOIN = {
    "discovery": {
        "bootstrapToken": {"apiServerEndpoint": "10.240.0.10:6443", "token": "abcdef.0123456789abcdef"},
    },
    "nodeRegistration": {
        "name": "{{ ds.meta_data.hostname }}",
        "kubeletExtraArgs": [{"name": "provider-id", "value": "remote-machine://{{ ds.meta_data.instance_id }}"}],
    },
}


def bootstrap_data(host: SshMachine) -> str:
    """As the bootstrap provider of kubeadm writes it, with paths below the machine's own root."""
    text = render_cloud_config(UserData("join", (join_configuration(JOIN, "v1beta4"),)))
    return text.replace("/run/", f"{host.root}/run/").replace("root:root", f"{os.getuid()}:{os.getgid()}")


async def test_a_machine_joins_with_kubeadm_and_its_kubelet_knows_the_provider_id(tmp_path: Path) -> None:
    async with ssh_machines(tmp_path) as [host], remote_plane(host) as plane:
        host.write("bin/kubeadm", f'#!/bin/sh\necho "kubeadm $*" >> {host.root}/calls\n')
        (host.root / "bin" / "kubeadm").chmod(0o755)
        spec = access(host, cleanUpCommands=["kubeadm reset --force"])
        await plane.machine_with("one", spec, bootstrap_data(host))
        [machine] = await plane.provisioned("one")
        assert host.calls == [f"kubeadm join --config {host.root}/{CONFIGURATION}"]
        registration = yaml.load(host.read(CONFIGURATION).encode())["nodeRegistration"]
        assert registration["name"] == "one"
        [argument] = registration["kubeletExtraArgs"]
        assert (argument["name"], argument["value"]) == ("provider-id", machine.spec.provider_id)
        assert (host.root / "run/cluster-api/bootstrap-success.complete").exists()

        await plane.deleted("one")
        assert host.calls[1:] == ["kubeadm reset --force"]
        assert not host.folder.exists()
