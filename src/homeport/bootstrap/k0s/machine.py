"""What workers and controllers have in common: their version, their files, their Secret, their Node."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from homeport.api.cluster.v1beta2.reference import ContractRef
from homeport.api.k0s.v1beta2 import HostSpec, K0sControllerConfig, K0sWorkerConfig
from homeport.api.meta import Unstructured
from homeport.bootstrap.k0s.node import OtherProviderID, node_patch
from homeport.bootstrap.k0s.scope import K0sScope
from homeport.bootstrap.k0s.source import Contents
from homeport.bootstrap.k0s.userdata import K0sData, render_cloud_config
from homeport.bootstrap.kubeadm import certificate
from homeport.bootstrap.kubeadm.source import MissingSource
from homeport.bootstrap.kubeadm.userdata import File
from homeport.bootstrap.reconciler import BootstrapReconciler
from homeport.bootstrap.secret import store_data
from homeport.bootstrap.token import Token
from homeport.bootstrap.upkeep import Upkeep
from homeport.capi import contract
from homeport.capi.capi import Capi
from homeport.capi.k0s import version as k0sversion
from homeport.capi.k0s.argument import MACHINE_NAME_LABEL, Arguments, BadArgument, parse_arguments
from homeport.capi.k0s.version import K0sVersion
from homeport.capi.object.ownership import OwnedElsewhere
from homeport.capi.remote import pki
from homeport.capi.remote.workload import NODE, Remote
from homeport.capi.resolution import NotInstalled
from homeport.client.absence import find_object
from homeport.client.errors import Conflict, NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.cache import key_of
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Terminal, Wait

C = TypeVar("C", K0sWorkerConfig, K0sControllerConfig)

TTL_SECONDS = 86_400.0  # of a token, as k0s' own tools choose it
SOURCE_SECONDS = 15.0  # Secrets and ConfigMaps of users have no label by which they could be watched
_MANAGER = "homeport-k0s-bootstrap"


class K0sConfigReconciler(BootstrapReconciler[C, K0sScope[C]]):
    field_manager = _MANAGER

    def __init__(self, manager: Manager, capi: Capi, usages: dict[str, str]) -> None:
        super().__init__(manager)
        self._capi = capi
        self._upkeep = Upkeep(self.client, capi.remotes, self.clock, self._write, TTL_SECONDS, usages)

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._upkeep.forget(key)

    def load(self, obj: C) -> K0sScope[C] | None:
        if obj.metadata.deletion_timestamp:
            self._upkeep.forget(key_of(obj))
            return None
        placed = self._placed(obj)
        return None if placed is None else K0sScope(obj, *placed)

    # -- data ----------------------------------------------------------------------------------------------------

    async def _version(self, scope: K0sScope[C]) -> K0sVersion | None:
        """Of the config, else of the Machine, else of the control plane; without a build, that of the control plane."""
        given = scope.object.spec.version or scope.owner.version
        plane = await self._control_plane_version(scope)
        if not given:
            return plane
        try:
            wanted = k0sversion.parse(given)
        except ValueError as wrong:
            where = "spec.version" if scope.object.spec.version else f"version of {scope.owner.kind}"
            raise Terminal("InvalidVersion", f"{where}: {wrong}") from wrong
        same = plane is not None and plane.kubernetes == wanted.kubernetes
        return plane if same and not wanted.suffixed else wanted

    async def _control_plane_version(self, scope: K0sScope[C]) -> K0sVersion | None:
        ref = scope.cluster.spec.control_plane_ref
        if ref is None:
            return None
        found = await self._referred(scope, ref)
        if found is None:
            return None
        text = contract.control_plane.version(found) or ""
        return k0sversion.parse(text) if k0sversion.is_valid(text) else None

    async def _referred(self, scope: K0sScope[C], ref: ContractRef) -> Unstructured | None:
        served = self._capi.contracts.resolve(ref)
        return await find_object(self.client, served.resource, Key(scope.key.namespace, ref.name))

    async def _hand_out(
        self, scope: K0sScope[C], files: tuple[File, ...], commands: list[str], token: Token | None
    ) -> None:
        spec: HostSpec = scope.object.spec
        contents: Contents = Contents(self.client, scope.key.namespace)
        ref = spec.provisioner.custom_user_data_ref
        custom = "" if ref is None else await contents.text(ref, "spec.provisioner.customUserDataRef")
        own: tuple[File, ...] = await contents.files(spec.files)
        text = render_cloud_config(K0sData((*own, *files), tuple(commands), custom))
        more = spec.secret_metadata
        await store_data(
            self.client,
            scope.object,
            scope.cluster.metadata.name,
            text,
            token,
            self._write,
            labels=more.labels if more is not None else {},
            annotations=more.annotations if more is not None else {},
        )
        self._upkeep.made(scope.key, token)
        scope.finish(scope.key.name)

    # -- the Node ------------------------------------------------------------------------------------------------

    async def _sync_node(self, scope: K0sScope[C]) -> Wait | None:
        """Kubelet does not know its provider ID, and may not set all labels."""
        owner = scope.owner
        if owner.pool or owner.deleting or not owner.provider_id:
            return None
        remote = self._capi.remotes.get(scope.cluster_key)
        node = None if remote is None else find_node(remote, owner.name, owner.node_name)
        if remote is None or node is None:
            return None  # a connection or the Node wakes us
        try:
            patch = node_patch(node, parse_or_stop(scope), owner.provider_id)
        except OtherProviderID as other:
            text = (
                f"Node {node.name!r} has spec.providerID {other}, and Machine {owner.name!r} is {owner.provider_id}: "
                "delete the Node if it is left over from another machine"
            )
            return Wait("NodeOfAnotherMachine", text, after=SOURCE_SECONDS, warning=True)
        if patch is None:
            return None
        try:
            await remote.client.patch(NODE, Key("", node.name), MergePatch(patch), self._write)
        except (Conflict, NotFound):
            return Wait("NodeChanged", f"Node {node.name!r} changed meanwhile", after=1.0, quiet=True)
        return None


async def made_or_waiting(making: Awaitable[Wait | None]) -> Wait | None:
    """Making user data; what is missing for it is waited for."""
    try:
        return await making
    except (certificate.MissingCertificate, pki.PkiError) as error:
        return Wait("CertificatesNotAvailable", str(error))
    except MissingSource as error:
        return Wait("DataSecretGenerationFailed", str(error), after=SOURCE_SECONDS)
    except NotInstalled as error:
        return Wait("ControlPlaneKindNotInstalled", str(error), after=SOURCE_SECONDS)
    except OwnedElsewhere as error:
        raise Terminal("SecretNameTaken", str(error)) from error


def find_node(remote: Remote, machine: str, known: str = "") -> Unstructured | None:
    """By its label, or by the name that it was given."""
    if known:
        return remote.nodes.get(Key("", known))
    labelled = [each for each in remote.nodes if (each.metadata.get("labels") or {}).get(MACHINE_NAME_LABEL) == machine]
    if len(labelled) == 1:
        return labelled[0]
    return remote.nodes.get(Key("", machine)) if not labelled else None


def parse_or_stop(scope: K0sScope[C]) -> Arguments:
    try:
        return parse_arguments(scope.object.spec.args)
    except BadArgument as wrong:
        raise Terminal("InvalidConfiguration", f"spec.args: {wrong}") from wrong
