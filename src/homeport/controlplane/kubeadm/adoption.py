"""Control plane Machines that were there before their KubeadmControlPlane become its own."""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import Machine
from homeport.capi import version
from homeport.capi.object.ownership import adoptable, controller_of, ensure_owner, is_controlled_by, owner_reference
from homeport.capi.remote import pki
from homeport.client.absence import find_object
from homeport.client.protocol import Client, Key, Write
from homeport.controlplane.kubeadm.observe.member import Members
from homeport.controlplane.kubeadm.scope import ControlPlaneScope
from homeport.runtime.outcome import Wait


class Adoption:
    def __init__(self, client: Client, write: Write, members: Members) -> None:
        self._client = client
        self._write = write
        self._members = members

    async def take(self, scope: ControlPlaneScope) -> Wait | None:
        """Fills in the Machines. All control plane Machines of a cluster must be ours, or nothing is done."""
        scope.owned = await self._members.owned(scope)
        others = [
            machine
            for machine in self._members.control_planes(scope.cluster_key)
            if not is_controlled_by(machine, scope.kcp)
        ]
        if not others:
            return None
        problem = next((text for machine in others if (text := _refusal(scope, machine))), "")
        if problem:
            scope.findings.blocked = problem
            return Wait("MixedControlPlane", problem)
        for machine in others:
            await ensure_owner(self._client, Machine, machine, owner_reference(scope.kcp, controller=True), self._write)
        await self._take_secrets(scope)
        names = ", ".join(sorted(machine.metadata.name for machine in others))
        return Wait("MachinesAdopted", f"Machine {names} is adopted by this control plane", after=1.0)

    async def _take_secrets(self, scope: ControlPlaneScope) -> None:
        """Certificates that the first Machine's bootstrap made must not go with it."""
        for purpose in pki.GENERATED:
            key = Key(scope.cluster_key.namespace, pki.secret_name(scope.cluster_key.name, purpose))
            secret = await find_object(self._client, pki.SECRET, key)
            if secret is None:
                continue
            holder = controller_of(secret)
            if holder is None or holder["kind"] != "KubeadmConfig":
                continue
            group, kind = str(holder["apiVersion"]).partition("/")[0], "KubeadmConfig"
            reference = owner_reference(scope.kcp, controller=True)
            await ensure_owner(self._client, pki.SECRET, secret, reference, self._write, without=[(group, kind)])


def _refusal(scope: ControlPlaneScope, machine: Machine) -> str:
    name, kcp = machine.metadata.name, scope.kcp
    holder = controller_of(machine)
    if holder is not None:
        return (
            f"control plane Machine {name} belongs to {holder['kind']} {holder['name']}: a control plane can't "
            "have two owners; nothing is changed until one of them is deleted"
        )
    if not adoptable(machine):
        return f"waiting for control plane Machine {name}, which has no owner, to be deleted"
    ref = machine.spec.bootstrap.config_ref
    if ref is None or ref.kind != "KubeadmConfig":
        return (
            f"control plane Machine {name} was not created with a KubeadmConfig and can't be adopted: delete it first"
        )
    if not machine.spec.version:
        return f"control plane Machine {name} has no spec.version and can't be adopted: set it"
    try:
        distance = version.minor_distance(machine.spec.version, kcp.spec.version)
    except ValueError as wrong:
        return f"control plane Machine {name} can't be adopted: {wrong}"
    if abs(distance) > 1:
        return (
            f"control plane Machine {name} has version {machine.spec.version}, more than one minor version from "
            f"{kcp.spec.version}: set spec.version closer to it"
        )
    return ""
