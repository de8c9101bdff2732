"""An import from beginning to end: what it finds, what it refuses, and what it writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource, Unstructured
from homeport.app.importer import body as bodies
from homeport.app.importer.account import Account, Credentials, open_account
from homeport.app.importer.body import DONE, IMPORTED, STATE, Draft, Json, group_machines
from homeport.app.importer.construction import MANAGER, Construction
from homeport.app.importer.keypair import Keys, check_keys, read_keys
from homeport.app.importer.match import Match, match
from homeport.app.importer.source import Refused, Running, read_running
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.capi.remote.workload import NODE
from homeport.client.dial import DialOptions
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.controlplane.kubeadm.desired import kubeadm_spec
from homeport.controlplane.kubeadm.workload.clusterconfig import updated
from homeport.machinery import condition
from homeport.runtime.clock import Clock

Say = Callable[[str], None]

_AVAILABLE = "Available"
_POLL_SECONDS = 1.0
_WRITE = Write(field_manager=MANAGER)


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asks for."""

    key: Key  # of the Cluster that will be
    credentials: Credentials
    pki: Path
    image: str = ""  # for new Machines whose VMs don't show theirs


@dataclass(frozen=True, slots=True)
class Plan:
    """What an import would do. `objects` in the order in which they are written."""

    draft: Draft
    keys: Keys
    specs: Mapping[str, Json]
    account: Account
    objects: Sequence[tuple[Resource, Json]]
    nodes_without_id: tuple[str, ...]

    @property
    def matches(self) -> list[Match]:
        return [*self.draft.control_plane.matches, *(each for group in self.draft.workers for each in group.matches)]

    def owner_of(self, found: Match) -> str:
        """What its Machine belongs to, for people."""
        if found.control_plane:
            return f"KubeadmControlPlane {self.draft.kcp_name}"
        return next(f"MachineDeployment {group.name}" for group in self.draft.workers if found in group.matches)


class Import:
    """`client` is the plane, `workload` the cluster that is imported."""

    def __init__(self, client: Client, workload: Client, request: Request, clock: Clock, dial: DialOptions) -> None:
        self._client = client
        self._workload = workload
        self._request = request
        self._clock = clock
        self._dial = dial

    async def state(self) -> str:
        """Of an import that was begun; '' if there is none. Raises Refused for a Cluster that is not one."""
        try:
            cluster = await self._client.get(Cluster, self._request.key)
        except NotFound:
            return ""
        annotations = cluster.metadata.annotations
        if annotations.get(IMPORTED) != self._request.key.name:
            raise Refused(f"Cluster {self._request.key} already exists and was not imported: choose another name")
        return annotations.get(STATE, "")

    # -- looking -----------------------------------------------------------------------------------------------

    async def plan(self) -> Plan:
        """Changes nothing anywhere. The caller closes the importer of the plan's account. Raises Refused."""
        request, now = self._request, self._clock.now()
        running = await read_running(self._workload)
        keys = await read_keys(request.pki, now)
        account = await open_account(
            self._client, request.key, request.credentials, running.endpoint, self._clock, self._dial
        )
        try:
            return await self._plan(running, keys, account, now)
        except BaseException:
            await account.importer.close()
            raise

    async def _plan(self, running: Running, keys: Keys, account: Account, now: float) -> Plan:
        importer, request = account.importer, self._request
        own = await self._own_uids(importer.machine_kind)
        matches, problems = match(running.nodes, await importer.candidates(), own)
        problems += await check_keys(self._workload, running, keys, request.key, self._clock)
        problems += [
            f"VM {each.candidate.name} does not show {' and '.join(each.candidate.missing)}: name the image of new "
            "Machines with --image"
            for each in matches
            if each.candidate.missing and not request.image
        ]
        if problems:
            raise Refused(*problems)
        specs = {each.candidate.id: self._spec(account, each) for each in matches}
        control_plane, workers = group_machines(request.key.name, matches, specs)
        draft = Draft(
            request.key,
            running,
            control_plane,
            workers,
            account.infra_cluster,
            importer.cluster_kind,
            importer.machine_kind,
            importer.template_kind,
            external=importer.vendor != "Harvester" or running.cloud_manager,
            notes=tuple(notes_of(request.key.name, running, control_plane, specs)),
        )
        check = Construction(self._client, draft, keys, specs, now, dry=True)
        await check.run(account.secrets)
        without = tuple(each.node.name for each in matches if not (each.node.get("spec") or {}).get("providerID"))
        return Plan(draft, keys, specs, account, check.made, without)

    def _spec(self, account: Account, found: Match) -> Json:
        spec = dict(found.candidate.spec)
        if found.candidate.missing and self._request.image:
            return account.importer.with_image(spec, self._request.image)
        return spec

    async def _own_uids(self, kind: Resource) -> set[str]:
        """Of InfraMachines that an earlier attempt made: their marks are ours."""
        name = self._request.key.name
        query = Query(namespace=self._request.key.namespace, labels=f"{CLUSTER_NAME_LABEL}={name}")
        found = (await self._client.list(kind, query)).items
        return {each.uid for each in found if (each.metadata.get("annotations") or {}).get(IMPORTED) == name}

    # -- writing -----------------------------------------------------------------------------------------------

    async def apply(self, plan: Plan, say: Say) -> None:
        """Safe to repeat after it was stopped anywhere. The Cluster is paused until the last write."""
        making = Construction(self._client, plan.draft, plan.keys, plan.specs, self._clock.now(), dry=False)
        await making.run(plan.account.secrets)
        say(f"created {len(making.made)} objects; Cluster {self._request.key.name} is paused")
        for each in plan.matches:
            await plan.account.importer.mark(each.candidate, making.marks[each.candidate.id])
            say(f"marked VM {each.candidate.name} ({each.candidate.id})")
        for each in plan.matches:
            await self._give_provider_id(each)
        await self.finish()
        say(f"resumed Cluster {self._request.key.name}")

    async def _give_provider_id(self, found: Match) -> None:
        """A Node without one can get it once; this is how its Machine finds it."""
        if (found.node.get("spec") or {}).get("providerID"):
            return
        body = {"metadata": {"uid": found.node.uid}, "spec": {"providerID": bodies.provider_id(found)}}
        await self._workload.patch(NODE, Key("", found.node.name), MergePatch(body), _WRITE)

    async def finish(self) -> None:
        body = {"metadata": {"annotations": {STATE: DONE}}, "spec": {"paused": None}}
        await self._client.patch(Cluster, self._request.key, MergePatch(body), _WRITE)

    async def until_available(self, seconds: float) -> None:
        """Raises Refused, with what is not available, if it takes longer."""
        until = self._clock.monotonic() + seconds
        while missing := await self._unavailable():
            if self._clock.monotonic() > until:
                raise Refused(f"the import is complete, but after {seconds:g} s not everything is available:", *missing)
            await asyncio.sleep(_POLL_SECONDS)

    async def _unavailable(self) -> list[str]:
        name = self._request.key.name
        query = Query(namespace=self._request.key.namespace, labels=f"{CLUSTER_NAME_LABEL}={name}")
        owners: list[Any] = [await self._client.get(Cluster, self._request.key)]
        for kind in (KubeadmControlPlane, MachineDeployment, Machine):
            listed: Any = await self._client.list(kind, query)
            owners += listed.items
        return [text for each in owners if (text := _not_available(each))]


def _not_available(obj: Any) -> str:
    found = condition.find([dict(each) for each in obj.status.conditions], _AVAILABLE)
    if found is not None and found.get("status") == "True":
        return ""
    said = str((found or {}).get("message") or "no status yet").replace("\n", " ")
    return f"{type(obj).__resource__.kind} {obj.metadata.name}: {said}"


def notes_of(name: str, running: Running, control_plane: bodies.Group, specs: Mapping[str, Json]) -> list[str]:
    """What the user should know, and what controllers change later."""
    found = []
    host = running.endpoint[0]
    held = [each.name for each in running.nodes if host in _node_addresses(each)]
    if held:
        found.append(
            f"the control plane's endpoint {host} is the address of Node {held[0]}: replacing it cuts off the cluster"
        )
    if len({str(specs[each.candidate.id]) for each in control_plane.matches}) > 1:
        size = control_plane.matches[0].candidate.size
        found.append(f"control planes differ: new ones are made like the most frequent ({size})")
    if not running.vip:
        found.append("no control plane runs kube-vip: new control planes get none, so something else must lead to them")
    managed = [each.name for each in running.nodes if _machine_of(each)]
    if managed:
        shown = f"Node {managed[0]} names Machine {_machine_of_name(running, managed[0])}"
        found.append(f"{shown} of a Cluster API plane: make sure that no other plane manages this cluster")
    spec = kubeadm_spec_of(running)
    if changed := changed_fields(running.configuration, updated(running.configuration, spec, running.version)):
        fields = ", ".join(changed)
        found.append(f"ConfigMap kube-system/kubeadm-config changes when the next control plane joins: {fields}")
    return found


def kubeadm_spec_of(running: Running) -> Json:
    """The clusterConfiguration that joining control planes get."""
    import msgspec

    from homeport.api.bootstrap.v1beta2 import KubeadmConfigSpec
    from homeport.app.importer.configuration import cluster_configuration

    given = {"clusterConfiguration": cluster_configuration(running.configuration)}
    wished = msgspec.convert(given, KubeadmConfigSpec, strict=False)
    found: Json = kubeadm_spec(wished, running.version, join=True).get("clusterConfiguration") or {}
    return found


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Empty values are as good as none."""
    names = sorted({*before, *after})
    return [each for each in names if (before.get(each) or None) != (after.get(each) or None)]


def _node_addresses(node: Unstructured) -> set[str]:
    return {str(each.get("address")) for each in (node.get("status") or {}).get("addresses") or ()}


def _machine_of(node: Unstructured) -> str:
    return str((node.metadata.get("annotations") or {}).get("cluster.x-k8s.io/machine") or "")


def _machine_of_name(running: Running, name: str) -> str:
    return next(_machine_of(each) for each in running.nodes if each.name == name)
