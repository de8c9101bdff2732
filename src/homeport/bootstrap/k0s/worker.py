"""K0sWorkerConfigs become Secrets with the user data of a worker."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.k0s.v1beta2 import K0sWorkerConfig
from homeport.bootstrap.k0s import command
from homeport.bootstrap.k0s.machine import K0sConfigReconciler, made_or_waiting, parse_or_stop
from homeport.bootstrap.k0s.scope import K0sScope
from homeport.bootstrap.kubeadm import certificate
from homeport.bootstrap.kubeadm.userdata import File
from homeport.bootstrap.token import Token
from homeport.capi.capi import Capi
from homeport.capi.k0s.argument import format_taint, join_flags
from homeport.capi.k0s.token import TOKEN_FILE, render_join_token, usages
from homeport.capi.name import UNINITIALIZED_TAINT
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase

Worker = K0sScope[K0sWorkerConfig]

_USAGES = {
    **usages("worker"),
    "description": "lets one machine join the cluster; created by the k0s bootstrap provider",
}


class K0sWorkerConfigReconciler(K0sConfigReconciler[K0sWorkerConfig]):
    controller_name = "k0sworkerconfig"
    kind = K0sWorkerConfig

    def __init__(self, manager: Manager, capi: Capi) -> None:
        super().__init__(manager, capi, _USAGES)

    def phases(self, scope: Worker) -> Sequence[Phase[Worker]]:
        return [self._await_infrastructure, self._restore, self._make, self._sync_node, self._keep_token]

    async def _keep_token(self, scope: Worker) -> Wait | None:
        return await self._upkeep.keep(scope, lambda token: self._join(scope, token))

    async def _make(self, scope: Worker) -> Wait | None:
        if scope.created:
            return None
        if not scope.initialized or not scope.endpoint:
            name = scope.cluster.metadata.name
            text = f"waiting for the control plane of Cluster {name!r} to be initialized"
            return Wait("WaitingForControlPlaneInitialization", text, quiet=True)
        return await made_or_waiting(self._join(scope, None))

    async def _join(self, scope: Worker, token: Token | None) -> Wait | None:
        """With a bootstrap token that this controller created, or a new one."""
        given = parse_or_stop(scope)
        version = await self._version(scope)
        authority = await certificate.find_authority(self.client, scope.cluster_key)
        if token is None:
            found = await self._upkeep.make_token(scope)
            if isinstance(found, Wait):
                return found
            token = found
        text = render_join_token(token.text, "worker", server=f"https://{scope.endpoint}", ca=authority)
        spec, owner = scope.object.spec, scope.owner
        hostname = "" if spec.use_system_hostname or owner.pool else owner.name
        flags = [
            f"--token-file {TOKEN_FILE}",
            *join_flags(
                given,
                machine="" if owner.pool else owner.name,
                hostname=hostname,
                # Nothing is scheduled before labels and taints of the Machine are on the Node.
                taints=[] if owner.pool else [format_taint(UNINITIALIZED_TAINT)],
            ),
        ]
        commands = [
            *spec.pre_k0s_commands,
            *command.download_commands(spec, "" if version is None else str(version), given),
            command.install_command(spec, "worker", flags),
            command.start_command("worker"),
            *spec.post_k0s_commands,
            command.SUCCESS,
        ]
        await self._hand_out(scope, (File(TOKEN_FILE, text, permissions="0600"),), commands, token)
        return None
