"""What a TenantControlPlane keeps inside the cluster it serves: applied, watched, and repaired."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import msgspec
import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.api.steward.v1alpha1 import (
    AddonsState,
    AddonState,
    AgentState,
    KonnectivityState,
    KubeadmConfigState,
    KubeadmPhases,
    ObjectState,
    PhaseState,
)
from homeport.capi.remote.workload import Remote
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Client, Key, Query, Write
from homeport.client.restmapper import RestMapper
from homeport.client.wire.reason import socket_reason
from homeport.hosted import name as names
from homeport.hosted.connection import Connections
from homeport.hosted.content import dns, konnectivity, permission, proxy
from homeport.hosted.content.inputs import (
    ADDON_LABEL,
    CONFIG_MAP,
    DAEMON_SET,
    DEPLOYMENT,
    MANAGED_LABEL,
    SERVICE,
    SYSTEM,
    ContentInputs,
    Item,
)
from homeport.hosted.content.join import render_join
from homeport.hosted.endpoint import Endpoint, Pending, resolve_endpoint
from homeport.hosted.tenant.flag import konnectivity_version
from homeport.hosted.tenant.scope import TenantScope
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

RETRY_SECONDS = 2.0
_MANAGED = Query(labels=MANAGED_LABEL)
# Whoever changes or deletes one of these wakes us; the rest is applied together with them.
_WATCHED = (CONFIG_MAP, DEPLOYMENT, DAEMON_SET, SERVICE)


class Workload:
    """A phase of the reconciler. What was applied is remembered, so that a loop that changes nothing asks nothing."""

    def __init__(self, connections: Connections, options: Write, wake: Callable[[Key], None]) -> None:
        self._connections = connections
        self._options = Write(field_manager=options.field_manager)
        self._wake = wake
        self._applied: dict[Key, str] = {}
        self._watching: set[Key] = set()

    async def forget(self, key: Key) -> None:
        self._applied.pop(key, None)
        self._watching.discard(key)
        await self._connections.forget(key)

    async def hold(self, scope: TenantScope) -> Wait | None:
        items = list(render_content(scope))
        digest = hashlib.sha256(msgspec.json.encode([each.body for each in items])).hexdigest()[:32]
        remote = await self._connections.get(scope.key, scope.admin)
        if self._applied.get(scope.key) != digest:
            try:
                await self._apply(remote.client, items)
                await self._remove_disabled(remote.client, items)
                scope.findings.served = await RestMapper(remote.client).version()
            except (ApiError, OSError, TimeoutError) as error:
                why = error.message if isinstance(error, ApiError) else socket_reason(error)
                text = f"the API server at {scope.findings.endpoint} does not answer yet: {why}"
                return Wait("WaitingForAPIServer", text, after=RETRY_SECONDS)
            self._applied[scope.key] = digest
        self._watch(scope.key, remote)
        scope.findings.reachable = True
        self._note(scope, digest)
        return None

    async def _apply(self, client: Client, items: list[Item]) -> None:
        for each in items:
            await client.apply(each.body, self._options, kind=each.kind, force=True)

    async def _remove_disabled(self, client: Client, items: list[Item]) -> None:
        """Add-ons that were switched off: everything that has our label of an add-on and is not wanted any more."""
        wanted = {(each.kind, each.namespace, each.name) for each in items}
        for kind in dict.fromkeys((*_REMOVED_KINDS, *(each.kind for each in items))):
            try:
                found = await client.list(kind, Query(labels=ADDON_LABEL))
            except NotFound:  # an old version that does not serve the kind
                continue
            for each in found.items:
                if (kind, each.namespace, each.name) not in wanted:
                    try:
                        await client.delete(
                            kind, Key(each.namespace, each.name), uid=each.uid, propagation="Background"
                        )
                    except NotFound:
                        continue

    def _watch(self, key: Key, remote: Remote) -> None:
        if key in self._watching:
            return
        self._watching.add(key)

        def changed(old: Unstructured | None, new: Unstructured | None) -> None:
            if new is None or (old is not None and _generation(old) != _generation(new)):
                self._applied.pop(key, None)
                self._wake(key)

        for kind in _WATCHED:
            remote.watch(kind, _MANAGED, changed)

    def _note(self, scope: TenantScope, digest: str) -> None:
        status, now = scope.object.status, rfc3339(scope.now)
        if status.kubeadmconfig is None or status.kubeadmconfig.checksum != digest:
            status.kubeadmconfig = KubeadmConfigState(
                checksum=digest, configmap_name=scope.part(names.KUBEADM_CONFIG), last_update=now
            )
            status.kubeadm_phase = KubeadmPhases(bootstrap_token=PhaseState(checksum=digest, last_update=now))
            status.addons = _addons(scope, now)


def _generation(obj: Unstructured) -> object:
    """What only a writer of the spec changes. ConfigMaps have no generation: any change of one is a change of data."""
    return obj.metadata.get("generation") or obj.get("data")


# Kinds that an add-on which is switched off may have left.
_REMOVED_KINDS: tuple[Resource, ...] = (
    DEPLOYMENT,
    DAEMON_SET,
    SERVICE,
    CONFIG_MAP,
    permission.BINDING,
    permission.POLICY,
)


def content_inputs(scope: TenantScope) -> ContentInputs:
    spec, endpoint = scope.object.spec, scope.findings.endpoint
    assert endpoint is not None
    network = spec.network_profile
    return ContentInputs(
        name=scope.name,
        version="v" + spec.kubernetes.version.removeprefix("v"),
        endpoint=endpoint,
        ca=scope.ca.certificate,
        domain=network.cluster_domain,
        service_cidr=network.service_cidr,
        pod_cidr=network.pod_cidr,
        dns=tuple(network.dns_service_ips),
        registry=spec.control_plane.deployment.registry_settings.registry.rstrip("/"),
        cgroup_driver=spec.kubernetes.kubelet.cgroupfs,
        kubelet_patches=tuple(msgspec.to_builtins(each) for each in spec.kubernetes.kubelet.configuration_json_patches),
    )


def render_content(scope: TenantScope) -> Iterator[Item]:
    """Everything, in the order in which it is applied."""
    inputs, addons = content_inputs(scope), scope.object.spec.addons
    yield from render_join(inputs)
    if addons.core_dns is not None:
        yield from dns.render_dns(inputs, repository=addons.core_dns.image_repository, tag=addons.core_dns.image_tag)
    if addons.kube_proxy is not None:
        given = addons.kube_proxy
        yield from proxy.render_proxy(inputs, repository=given.image_repository, tag=given.image_tag)
    if addons.konnectivity is not None:
        yield from konnectivity.render_agent(inputs, _agent(scope))
    yield from permission.render_permissions(inputs, blocked(scope))


def blocked(scope: TenantScope) -> list[str]:
    given = scope.object.spec.write_permissions
    chosen = {"CREATE": given.block_creation, "UPDATE": given.block_update, "DELETE": given.block_deletion}
    return [each for each, on in chosen.items() if on]


def _agent(scope: TenantScope) -> konnectivity.AgentInputs:
    given, endpoint = scope.object.spec.addons.konnectivity, scope.findings.endpoint
    assert given is not None
    assert endpoint is not None
    agent, tunnel = given.agent, _tunnel(scope, endpoint, given.server.port)
    version = konnectivity_version(scope.pod_inputs(), agent.version)
    return konnectivity.AgentInputs(
        image=f"{agent.image}:{version}",
        host=tunnel.host,
        port=tunnel.port,
        mode=agent.mode,
        replicas=agent.replicas,
        host_network=agent.host_network,
        tolerations=agent.tolerations,
        extra_args=agent.extra_args,
    )


def _tunnel(scope: TenantScope, endpoint: Endpoint, port: int) -> Endpoint:
    """Where agents dial: beside the API server, which may be at a node port."""
    service, host = scope.findings.service, endpoint.host
    if service is None:
        return Endpoint(host, port)
    found = resolve_endpoint(service, names.KONNECTIVITY_PORT_NAME, address=host, node_address=host)
    return Endpoint(host, port) if isinstance(found, Pending) else found


def _addons(scope: TenantScope, now: str) -> AddonsState:
    given = scope.object.spec.addons
    tunnel = given.konnectivity

    def state(on: bool) -> AddonState:
        return AddonState(enabled=on, last_update=now if on else None)

    found = AddonsState(core_dns=state(given.core_dns is not None), kube_proxy=state(given.kube_proxy is not None))
    if tunnel is None:
        found.konnectivity = KonnectivityState(enabled=False)
        return found
    made = {"last_update": now, "namespace": SYSTEM}
    found.konnectivity = KonnectivityState(
        enabled=True,
        agent=AgentState(**made, mode=tunnel.agent.mode, name=konnectivity.AGENT),
        sa=ObjectState(**made, name=konnectivity.AGENT),
        clusterrolebinding=ObjectState(last_update=now, name=konnectivity.SERVER_USER),
    )
    return found
