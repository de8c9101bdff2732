"""KubeadmConfigs become Secrets with bootstrap data: for the first control plane machine, then for those that join."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.meta import wire
from homeport.bootstrap.kubeadm import certificate, discovery
from homeport.bootstrap.kubeadm.cloudconfig import render_cloud_config
from homeport.bootstrap.kubeadm.configuration import (
    UnsupportedVersion,
    cluster_configuration,
    init_configuration,
    join_configuration,
    kubeadm_api,
)
from homeport.bootstrap.kubeadm.containerlinux import BadContainerLinuxConfig
from homeport.bootstrap.kubeadm.ignition import BadContent, render_ignition
from homeport.bootstrap.kubeadm.scope import ConfigScope, Json
from homeport.bootstrap.kubeadm.source import (
    BadSource,
    MissingSource,
    Sources,
    has_template,
    resolve_files,
    resolve_users,
)
from homeport.bootstrap.kubeadm.status import AVAILABLE, unusable
from homeport.bootstrap.kubeadm.userdata import File, UserData, Verb
from homeport.bootstrap.reconciler import BootstrapReconciler
from homeport.bootstrap.scope import is_created
from homeport.bootstrap.secret import store_data
from homeport.bootstrap.token import TTL_SECONDS, BadToken, Token
from homeport.bootstrap.turn import Turn
from homeport.bootstrap.upkeep import Upkeep
from homeport.capi import contract, version
from homeport.capi.capi import Capi
from homeport.capi.name import UNINITIALIZED_TAINT, Reason
from homeport.capi.object.ownership import OwnedElsewhere, owner_reference
from homeport.capi.remote import pki
from homeport.capi.resolution import NotInstalled
from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.runtime.cache import key_of
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Terminal, Wait
from homeport.runtime.reconciler import Phase

MANAGER = "homeport-kubeadm-bootstrap"
# What the Secret of a token says besides the token.
USAGES = {
    "usage-bootstrap-signing": "true",
    "usage-bootstrap-authentication": "true",
    "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
    "description": "lets one machine join the cluster; created by the kubeadm bootstrap provider",
}
# Secrets that users' files and passwords come from have no label by which they could be watched.
_SOURCE_SECONDS = 15.0


class KubeadmConfigReconciler(BootstrapReconciler[KubeadmConfig, ConfigScope]):
    controller_name = "kubeadmconfig"
    kind = KubeadmConfig
    field_manager = MANAGER

    def __init__(self, manager: Manager, capi: Capi, *, ttl: float = TTL_SECONDS) -> None:
        super().__init__(manager)
        self._capi = capi
        self._turn = Turn(manager, self._write)
        self._upkeep = Upkeep(self.client, capi.remotes, self.clock, self._write, ttl, USAGES)

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._upkeep.forget(key)

    def waits(self, config: KubeadmConfig) -> bool:
        """Whether its cluster may bring it forward: its data are missing, or their token can't be renewed yet."""
        return not is_created(config) or self._upkeep.waits_for_connection(key_of(config))

    def load(self, obj: KubeadmConfig) -> ConfigScope | None:
        if obj.metadata.deletion_timestamp:
            self._upkeep.forget(key_of(obj))
            return None
        placed = self._placed(obj)
        return None if placed is None else ConfigScope(obj, *placed)

    def phases(self, scope: ConfigScope) -> Sequence[Phase[ConfigScope]]:
        return [self._await_infrastructure, self._give_lock_back, self._restore, self._make, self._keep_token]

    # -- before anything is made -----------------------------------------------------------------------------------

    async def _give_lock_back(self, scope: ConfigScope) -> Wait | None:
        if scope.initialized and scope.owner.control_plane:
            await self._turn.give_back(scope)
        return None

    async def _keep_token(self, scope: ConfigScope) -> Wait | None:
        if discovery.by_file(scope.join):
            return None
        given = discovery.given_token(scope.join)
        return await self._upkeep.keep(scope, lambda token: self._join(scope, token), given)

    # -- making the data -------------------------------------------------------------------------------------------

    async def _make(self, scope: ConfigScope) -> Wait | None:
        if scope.created:
            return None
        try:
            if scope.initialized:
                return await self._join(scope, None)
            if scope.owner.control_plane:
                return await self._init(scope)
        except (certificate.MissingCertificate, pki.PkiError) as error:
            scope.certificates = unusable(str(error))
            return Wait("CertificatesNotAvailable", str(error))
        except MissingSource as error:
            return Wait("SourceMissing", str(error), after=_SOURCE_SECONDS)
        except NotInstalled as error:
            return Wait("ControlPlaneKindNotInstalled", str(error), after=_SOURCE_SECONDS)
        except (BadSource, BadContent, BadContainerLinuxConfig, BadToken, UnsupportedVersion) as error:
            raise Terminal("InvalidConfiguration", str(error)) from error
        except OwnedElsewhere as error:
            raise Terminal("SecretNameTaken", str(error)) from error
        return Wait(
            Reason.WAITING_FOR_CONTROL_PLANE_INITIALIZED,
            f"waiting for the control plane of Cluster {scope.cluster.metadata.name!r} to be initialized",
            quiet=True,
        )

    async def _init(self, scope: ConfigScope) -> Wait | None:
        if (wait := await self._turn.await_turn(scope)) is not None:
            return wait
        spec = scope.object.spec
        api = kubeadm_api(_version(scope))
        needed = certificate.for_control_plane(spec.cluster_configuration)
        pairs = await self._init_certificates(scope, [each.purpose for each in needed])
        scope.certificates = AVAILABLE
        init = wire(spec.init_configuration)
        documents = (
            cluster_configuration(wire(spec.cluster_configuration), init, scope.facts(), api),
            init_configuration(init, api),
        )
        text = await self._render(scope, "init", documents, certificate.as_files(needed, pairs))
        # All that can fail is behind us: a machine that has the lock also has its data.
        if (wait := await self._turn.take(scope)) is not None:
            return wait
        return await self._hand_out(scope, text, None)

    async def _init_certificates(self, scope: ConfigScope, purposes: list[pki.Purpose]) -> Any:
        """A control plane provider makes them; without one, for control planes of single Machines, we do."""
        now = self.clock.now()
        if scope.cluster.spec.control_plane_ref is not None:
            return await certificate.find(self.client, scope.cluster_key, purposes, now=now)
        given = scope.object.spec.cluster_configuration
        asked: dict[str, Any] = {"algorithm": given.encryption_algorithm}
        if given.ca_certificate_validity_period_days:
            asked["days"] = given.ca_certificate_validity_period_days
        return await pki.ensure(
            self.client,
            scope.cluster_key,
            owner=owner_reference(scope.object, controller=True),
            now=now,
            options=self._write,
            external_etcd="apiserver-etcd-client" in purposes,
            **asked,
        )

    async def _join(self, scope: ConfigScope, token: Token | None) -> Wait | None:
        """With a bootstrap token that this controller created, or a new one if one is needed."""
        api = kubeadm_api(_version(scope))
        join, authority, files = await self._join_parts(scope)
        scope.certificates = AVAILABLE
        if not scope.endpoint:
            return Wait(
                "WaitingForControlPlaneEndpoint",
                f"spec.controlPlaneEndpoint of Cluster {scope.cluster.metadata.name!r} is not set yet",
            )
        if discovery.by_file(join):
            file = discovery.discovery_file(join, endpoint=scope.endpoint, authority=authority)
            text = await self._render(scope, "join", (join_configuration(join, api),), files, (file,) if file else ())
            return await self._hand_out(scope, text, None)
        given = discovery.given_token(join)
        if given:
            Token.parse(given)
        # Rendered with the token last: a token is made only for data that will be handed out.
        sources = await self._sources(scope)
        if not given and token is None:
            found = await self._upkeep.make_token(scope)
            if isinstance(found, Wait):
                return found
            token = found
        filled = discovery.with_token(
            join,
            token=given or (token.text if token else ""),
            endpoint=scope.endpoint,
            hashes=pki.hashes(authority),
        )
        text = self._write_down(scope, "join", (join_configuration(filled, api),), files, sources)
        return await self._hand_out(scope, text, token)

    async def _join_parts(self, scope: ConfigScope) -> tuple[dict[str, Any], bytes, tuple[File, ...]]:
        """JoinConfiguration, the authority's certificate, and the files that a control plane needs besides."""
        join = scope.join
        if not scope.owner.control_plane:
            _refuse_control_plane(scope, join)
            return _with_taint(join), await certificate.find_authority(self.client, scope.cluster_key), ()
        needed = certificate.for_control_plane(scope.object.spec.cluster_configuration)
        purposes = [each.purpose for each in needed]
        pairs = await certificate.find(self.client, scope.cluster_key, purposes, now=self.clock.now())
        join["controlPlane"] = join.get("controlPlane") or {}
        return join, pairs["ca"].certificate, certificate.as_files(needed, pairs)

    async def _hand_out(self, scope: ConfigScope, text: str, token: Token | None) -> Wait | None:
        cluster, form = scope.cluster.metadata.name, scope.object.spec.format
        await store_data(self.client, scope.object, cluster, text, token, self._write, form=form)
        self._upkeep.made(scope.key, token)
        scope.finish(scope.key.name)
        return None

    # -- rendering -------------------------------------------------------------------------------------------------

    async def _render(
        self,
        scope: ConfigScope,
        verb: Verb,
        documents: tuple[Json, ...],
        files: tuple[File, ...],
        more: tuple[File, ...] = (),
    ) -> str:
        own, users = await self._sources(scope)
        return self._write_down(scope, verb, documents, files, ((*own, *more), users))

    async def _sources(self, scope: ConfigScope) -> tuple[tuple[File, ...], tuple[Json, ...]]:
        spec = scope.object.spec
        sources = Sources(self.client, scope.key.namespace)
        values = await self._template_values(scope) if has_template(spec.files) else {}
        return await resolve_files(spec.files, sources, values), await resolve_users(spec.users, sources)

    async def _template_values(self, scope: ConfigScope) -> Json:
        """Read live: a template is rendered once per machine, and has to show the version of now."""
        ref = scope.cluster.spec.control_plane_ref
        if ref is None:
            return {}
        served = self._capi.contracts.resolve(ref)
        try:
            found = await self.client.get(served.resource, Key(scope.key.namespace, ref.name))
        except NotFound:
            raise MissingSource(
                f"{ref.kind} {ref.name!r} does not exist, and the template of a file may need it"
            ) from None
        text = contract.control_plane.version(found)
        return {"controlPlane": {"version": str(version.parse(text))}} if text else {}

    def _write_down(
        self,
        scope: ConfigScope,
        verb: Verb,
        documents: tuple[Json, ...],
        files: tuple[File, ...],
        sources: tuple[tuple[File, ...], tuple[Json, ...]],
    ) -> str:
        spec = scope.object.spec
        data = UserData(
            verb=verb,
            configuration=documents,
            files=(*files, *sources[0]),
            boot_commands=tuple(spec.boot_commands),
            pre_commands=tuple(spec.pre_kubeadm_commands),
            post_commands=tuple(spec.post_kubeadm_commands),
            users=sources[1],
            ntp=wire(spec.ntp),
            disk_setup=wire(spec.disk_setup),
            mounts=tuple(tuple(each) for each in spec.mounts),
            verbosity=spec.verbosity,
        )
        if spec.format != "ignition":
            return render_cloud_config(data)
        given = spec.ignition.container_linux_config
        return render_ignition(data, given.additional_config, strict=bool(given.strict))


def _version(scope: ConfigScope) -> version.Version:
    """Raises Terminal."""
    try:
        return version.parse(scope.owner.version)
    except ValueError as wrong:
        owner = f"{scope.owner.kind} {scope.owner.name!r}"
        text = f"spec.version of {owner} is required for kubeadm's configuration: {wrong}"
        raise Terminal("InvalidVersion", text) from wrong


def _refuse_control_plane(scope: ConfigScope, join: Json) -> None:
    if join.get("controlPlane") is not None:
        raise Terminal(
            "InvalidConfiguration",
            f"spec.joinConfiguration.controlPlane is set, but {scope.owner.kind} {scope.owner.name!r} is a worker: "
            "remove it, or use a control plane",
        )


def _with_taint(join: Json) -> Json:
    """Nothing is scheduled on a worker before labels and taints of its Machine are on the Node."""
    registration = dict(join.get("nodeRegistration") or {})
    taints = list(registration.get("taints") or ())
    if any(each.get("key") == UNINITIALIZED_TAINT["key"] for each in taints):
        return join
    return {**join, "nodeRegistration": {**registration, "taints": [*taints, dict(UNINITIALIZED_TAINT)]}}
