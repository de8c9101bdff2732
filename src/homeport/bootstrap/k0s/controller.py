"""K0sControllerConfigs become Secrets with the user data of a controller: the first makes the cluster, others join."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.bootstrap.v1beta2 import ClusterConfiguration
from homeport.api.k0s.v1beta2 import K0sControllerConfig
from homeport.bootstrap.k0s import command
from homeport.bootstrap.k0s.clusterconfig import CONFIG_FILE, PKI_DIR, ClusterFacts, render_config, vrrp_password
from homeport.bootstrap.k0s.machine import K0sConfigReconciler, made_or_waiting, parse_or_stop
from homeport.bootstrap.k0s.scope import K0sScope
from homeport.bootstrap.kubeadm import certificate
from homeport.bootstrap.kubeadm.userdata import File
from homeport.bootstrap.token import Token
from homeport.bootstrap.turn import Turn
from homeport.capi.capi import Capi
from homeport.capi.k0s.argument import Arguments, join_flags, runs_worker
from homeport.capi.k0s.token import JOIN_PORT, TOKEN_FILE, render_join_token, usages
from homeport.capi.remote import pki
from homeport.machinery import condition, yaml
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase

Controller = K0sScope[K0sControllerConfig]

_DESCRIPTION = "lets one controller join the cluster; created by the k0s bootstrap provider"
# Infrastructure that has a load balancer says so by this condition.
_LOAD_BALANCER = "LoadBalancerAvailable"
_SINGLE = ("--single", "--single=true")


class K0sControllerConfigReconciler(K0sConfigReconciler[K0sControllerConfig]):
    controller_name = "k0scontrollerconfig"
    kind = K0sControllerConfig

    def __init__(self, manager: Manager, capi: Capi) -> None:
        super().__init__(manager, capi, {**usages("controller"), "description": _DESCRIPTION})
        self._turn = Turn(manager, self._write)

    def phases(self, scope: Controller) -> Sequence[Phase[Controller]]:
        return [
            self._await_infrastructure,
            self._give_lock_back,
            self._restore,
            self._make,
            self._sync_node,
            self._keep_token,
        ]

    async def _give_lock_back(self, scope: Controller) -> Wait | None:
        if scope.initialized:
            await self._turn.give_back(scope)
        return None

    async def _keep_token(self, scope: Controller) -> Wait | None:
        return await self._upkeep.keep(scope, lambda token: self._join(scope, token))

    async def _make(self, scope: Controller) -> Wait | None:
        if scope.created:
            return None
        if not scope.endpoint:
            text = f"spec.controlPlaneEndpoint of Cluster {scope.cluster.metadata.name!r} is not set yet"
            return Wait("WaitingForControlPlaneEndpoint", text)
        return await made_or_waiting(self._join(scope, None) if scope.initialized else self._init(scope))

    # -- the first one, and others -------------------------------------------------------------------------------

    async def _init(self, scope: Controller) -> Wait | None:
        if (wait := await self._turn.await_turn(scope)) is not None:
            return wait
        pairs = await self._certificates(scope)
        files = certificate.as_files(_needed(), pairs)
        config = await self._config(scope, pairs["ca"])
        commands = await self._commands(scope, [])
        if (wait := await self._turn.take(scope)) is not None:
            return wait
        await self._hand_out(scope, (*files, config), commands, None)
        return None

    async def _join(self, scope: Controller, token: Token | None) -> Wait | None:
        pairs = await self._certificates(scope)
        config = await self._config(scope, pairs["ca"])
        commands = await self._commands(scope, [f"--token-file {TOKEN_FILE}"])
        if token is None:
            found = await self._upkeep.make_token(scope)
            if isinstance(found, Wait):
                return found
            token = found
        host = scope.cluster.spec.control_plane_endpoint.host
        api = ((scope.object.spec.k0s or {}).get("spec") or {}).get("api") or {}
        shown = f"[{host}]" if ":" in host else host
        server = f"https://{shown}:{api.get('k0sApiPort') or JOIN_PORT}"
        text = render_join_token(token.text, "controller", server=server, ca=pairs["ca"].certificate)
        await self._hand_out(scope, (config, File(TOKEN_FILE, text, permissions="0600")), commands, token)
        return None

    # -- parts ---------------------------------------------------------------------------------------------------

    async def _certificates(self, scope: Controller) -> dict[pki.Purpose, pki.KeyPair]:
        now = self.clock.now()
        return await certificate.find(self.client, scope.cluster_key, list(pki.GENERATED), now=now)

    async def _config(self, scope: Controller, authority: pki.KeyPair) -> File:
        network, endpoint = scope.cluster.spec.cluster_network, scope.cluster.spec.control_plane_endpoint
        facts = ClusterFacts(
            host=endpoint.host,
            port=endpoint.port,
            pod_cidrs=tuple(network.pods.cidr_blocks),
            service_cidrs=tuple(network.services.cidr_blocks),
            dns_domain=network.service_domain,
            balanced=_brings_vip(scope) or await self._is_balanced(scope),
            password=vrrp_password(authority.key or b""),
        )
        single = any(each in scope.object.spec.args for each in _SINGLE)
        config = render_config(scope.object.spec.k0s, facts, single=single)
        return File(CONFIG_FILE, yaml.dump(config), permissions="0600")

    async def _is_balanced(self, scope: Controller) -> bool:
        """The infrastructure has a load balancer at the Cluster's address."""
        ref = scope.cluster.spec.infrastructure_ref
        if ref is None:
            return False
        found = await self._referred(scope, ref)
        if found is None:
            return False
        status = found.get("status") or {}
        return condition.find(list(status.get("conditions") or ()), _LOAD_BALANCER) is not None

    async def _commands(self, scope: Controller, more: list[str]) -> list[str]:
        spec, given = scope.object.spec, parse_or_stop(scope)
        version = await self._version(scope)
        flags = ["--force", f"--config {CONFIG_FILE}", *more]
        if "enable-dynamic-config" not in given.names:
            flags.append("--enable-dynamic-config")
        flags.append(f"--env AUTOPILOT_HOSTNAME={scope.owner.name}")
        return [
            *spec.pre_k0s_commands,
            *command.download_commands(spec, "" if version is None else str(version), given),
            command.install_command(spec, "controller", [*flags, *_node_flags(scope, given)]),
            command.start_command("controller"),
            *spec.post_k0s_commands,
            command.SUCCESS,
        ]


def _node_flags(scope: Controller, given: Arguments) -> list[str]:
    if not runs_worker(given):
        return list(given.rest)
    name = scope.owner.name
    return join_flags(given, machine=name, hostname="" if scope.object.spec.use_system_hostname else name)


def _brings_vip(scope: Controller) -> bool:
    """kube-vip among the user's files holds the address."""
    return any("kube-vip" in each.path or "kube-vip" in each.content for each in scope.object.spec.files)


def _needed() -> list[certificate.Needed]:
    return certificate.for_control_plane(ClusterConfiguration(certificates_dir=PKI_DIR))
