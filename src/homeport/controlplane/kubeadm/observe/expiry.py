"""When the certificates of a control plane Machine end, as its API server shows it: noted for the Machine."""

from __future__ import annotations

import asyncio
import ssl

import structlog
from cryptography import x509

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.capi.name import CERTIFICATES_EXPIRY
from homeport.capi.remote.tunnel import Tunnel
from homeport.client.errors import ApiError
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.controlplane.kubeadm.etcd.connection import Forwarder
from homeport.controlplane.kubeadm.observe.reader import node_of
from homeport.controlplane.kubeadm.scope import ControlPlaneScope
from homeport.controlplane.kubeadm.workload.upkeep import SYSTEM
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

_SECONDS = 10.0
_PORT = 6443


class Expiry:
    def __init__(self, client: Client, write: Write) -> None:
        self._client = client
        self._write = write

    async def note(self, scope: ControlPlaneScope) -> Wait | None:
        """Once per Machine: certificates are renewed by replacing it."""
        if scope.remote is None:
            return None
        for owned in scope.owned:
            config, node = owned.config, node_of(owned.machine, scope.remote)
            if config is None or not node or owned.machine.metadata.deletion_timestamp:
                continue
            known = {**config.metadata.annotations, **owned.machine.metadata.annotations}
            if CERTIFICATES_EXPIRY in known:
                continue
            try:
                async with asyncio.timeout(_SECONDS):
                    moment = await read_expiry(scope.remote, node, _port(config))
            except (OSError, ssl.SSLError, ApiError, ValueError, TimeoutError) as problem:
                log.info("the certificate of the API server can't be read", node=node, error=str(problem))
                continue
            patch = MergePatch({"metadata": {"annotations": {CERTIFICATES_EXPIRY: rfc3339(moment)}}})
            key = Key(config.metadata.namespace, config.metadata.name)
            await self._client.patch(KubeadmConfig, key, patch, self._write)
        return None


def _port(config: KubeadmConfig) -> int:
    join = config.spec.join_configuration.control_plane
    endpoint = join.local_api_endpoint if join is not None else config.spec.init_configuration.local_api_endpoint
    return endpoint.bind_port or _PORT


async def read_expiry(remote: Forwarder, node: str, port: int) -> float:
    """Seconds since the epoch. The certificate is looked at, not trusted: no secret is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    stream = await remote.port_forward(SYSTEM, f"kube-apiserver-{node}", port)
    try:
        tunnel = Tunnel(stream, context, node)
        await tunnel.open()
        return expiry_of(tunnel.peer_certificate())
    finally:
        await stream.close()


def expiry_of(der: bytes | None) -> float:
    if der is None:
        raise ValueError("the API server presents no certificate")
    return x509.load_der_x509_certificate(der).not_valid_after_utc.timestamp()
