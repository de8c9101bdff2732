"""Writes the objects of an import, or has the server check them: one order for both, so that nothing is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from homeport.api.bootstrap.v1beta2 import KubeadmConfig, KubeadmConfigTemplate
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachineSet
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Object, Resource, Unstructured
from homeport.app.importer import body as bodies
from homeport.app.importer.body import IMPORTED, Draft, Group, Json, MachineBodies
from homeport.app.importer.keypair import Keys
from homeport.app.importer.match import Match
from homeport.app.importer.source import Refused
from homeport.capi.object.ownership import owner_reference
from homeport.capi.remote import kubeconfig, pki
from homeport.client.errors import AlreadyExists, ApiError
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.controlplane.kubeadm.plan.rollout import outdated
from homeport.core.machinedeployment.intent import new_set
from homeport.core.machinedeployment.revision import is_wanted
from homeport.infra.candidate import Mark

O = TypeVar("O", bound=Object)

MANAGER = "homeport-import"
_FIRST = 1  # revision of the MachineSets


@dataclass(slots=True)
class Construction:
    """`dry`: the server checks every object and stores none. What was made is in `made`, in its order."""

    client: Client
    draft: Draft
    keys: Keys
    specs: Mapping[str, Json]  # of machines, by the id of the VM
    now: float
    dry: bool
    made: list[tuple[Resource, Json]] = field(default_factory=list)
    marks: dict[str, Mark] = field(default_factory=dict)  # by the id of the VM
    rolls: list[str] = field(default_factory=list)  # Machines that the controllers would replace, and why

    async def run(self, secrets: list[Json]) -> None:
        """`secrets`: with the credentials, where they are not there yet. Raises Refused, ApiError."""
        draft = self.draft
        cluster = await self._typed(Cluster, bodies.cluster_body(draft))
        for secret in secrets:
            await self._put(pki.SECRET, bodies.annotated(draft, secret))
        body = bodies.owned(bodies.annotated(draft, draft.infra_cluster), cluster)
        infra_cluster = await self._put(draft.cluster_kind, body)
        await self._provisioned(infra_cluster)
        template = await self._template(cluster, draft.control_plane)
        kcp = await self._typed(
            KubeadmControlPlane, bodies.owned(bodies.control_plane_body(draft), cluster, controller=True)
        )
        await self._secrets(kcp)
        for match in draft.control_plane.matches:
            made = bodies.control_plane_machine(draft, kcp, template, match, self.specs[match.candidate.id])
            await self._machine(made, match, infra_cluster, kcp)
        for group in draft.workers:
            await self._workers(cluster, group, infra_cluster)
        if self.rolls:
            raise Refused(*self.rolls)

    async def _workers(self, cluster: Cluster, group: Group, infra_cluster: Unstructured) -> None:
        draft = self.draft
        template = await self._template(cluster, group)
        body = bodies.owned(bodies.config_template_body(draft, group), cluster)
        config_template = await self._put(KubeadmConfigTemplate.__resource__, body)
        deployment = await self._typed(MachineDeployment, bodies.owned(bodies.deployment_body(draft, group), cluster))
        body = bodies.annotated(draft, new_set(deployment, _FIRST, len(group.matches), surge=1))
        machine_set = await self._typed(MachineSet, body)
        if not is_wanted(machine_set, deployment, self.now):
            self.rolls.append(f"MachineDeployment {group.name} would replace its Machines: the import is not possible")
        for match in group.matches:
            spec = self.specs[match.candidate.id]
            made = bodies.worker_machine(draft, machine_set, template, config_template, match, spec)
            await self._machine(made, match, infra_cluster, None)

    async def _template(self, cluster: Cluster, group: Group) -> Unstructured:
        body = bodies.owned(bodies.template_body(self.draft, group), cluster)
        found = await self._put(self.draft.template_kind, body)
        return Unstructured({**self.draft.template_kind.type_meta, **found})

    async def _machine(
        self, made: MachineBodies, match: Match, infra_cluster: Unstructured, kcp: KubeadmControlPlane | None
    ) -> None:
        """The Machine comes last: from then on the other two have an owner."""
        draft = self.draft
        config = await self._typed(KubeadmConfig, made.config)
        infra = await self._put(draft.machine_kind, made.infra)
        machine = await self._typed(Machine, made.machine)
        key = Key(draft.key.namespace, match.machine)
        self.marks[match.candidate.id] = Mark(key, infra.uid, draft.key.name, infra_cluster.uid)
        reasons = outdated(kcp, machine, config, infra, self.now) if kcp is not None else ()
        self.rolls += [f"Machine {match.machine} would be replaced: {each}" for each in reasons]

    async def _secrets(self, kcp: KubeadmControlPlane) -> None:
        """Owned by the control plane, which renews the kubeconfig in time."""
        key, owner = self.draft.key, owner_reference(kcp, controller=True)
        for purpose, pair in self.keys.items():
            await self._put(pki.SECRET, bodies.annotated(self.draft, pki.as_secret(key, purpose, pair, owner)))
        server = kubeconfig.server_url(*self.draft.running.endpoint)
        content = kubeconfig.make(key.name, server, self.keys["ca"], now=self.now)
        await self._put(pki.SECRET, bodies.annotated(self.draft, kubeconfig.as_secret(key, content, owner)))

    async def _provisioned(self, infra_cluster: Unstructured) -> None:
        """What is checked before the first machine of a cluster does not concern one that runs."""
        if self.dry:
            return
        status = {"ready": True, "initialization": {"provisioned": True}}
        key = Key(self.draft.key.namespace, infra_cluster.name)
        patch = MergePatch({"status": status})
        await self.client.patch(self.draft.cluster_kind, key, patch, Write(MANAGER), subresource="status")

    async def _typed(self, kind: type[O], body: Json) -> O:
        return msgspec.convert(await self._put(kind.__resource__, body), kind, strict=False)

    async def _put(self, kind: Resource, body: Json) -> Unstructured:
        """The object as the server has it: new, or from an attempt that was interrupted."""
        name = f"{kind.kind} {body['metadata']['name']}"
        self.made.append((kind, body))
        try:
            return await self.client.create(body, Write(MANAGER, dry_run=self.dry), kind=kind)
        except AlreadyExists:
            found = await self.client.get(kind, Key(body["metadata"]["namespace"], body["metadata"]["name"]))
        except ApiError as error:
            if self.dry:
                raise Refused(f"{name} would be rejected: {error.message}") from error
            raise
        annotations = found.metadata.get("annotations") or {}
        if annotations.get(IMPORTED) != self.draft.key.name:
            raise Refused(f"{name} already exists and was not created by this import: choose another name or namespace")
        if (found.get("spec") or {}).get("providerID") != (body.get("spec") or {}).get("providerID"):
            raise Refused(f"{name} already exists and is about another VM: run `homeport import undo` first")
        return found
