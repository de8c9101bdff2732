"""Kubeconfigs of the programs and users of a hosted control plane. Pure."""

from __future__ import annotations

from homeport.apiserver.auth.certificate import LEAF_DAYS
from homeport.capi.remote import kubeconfig as stored
from homeport.capi.remote.kubeconfig import server_url
from homeport.capi.remote.pki import KeyPair
from homeport.client.config import ConfigError
from homeport.hosted.certificate import renew_at, sign_client, stale_client

__all__ = ["make", "renewal", "server_url", "stale"]


def make(
    cluster: str,
    server: str,
    ca: KeyPair,
    user: str,
    groups: tuple[str, ...] = (),
    *,
    now: float,
    tls_server_name: str = "",
    days: int = LEAF_DAYS,
) -> bytes:
    pair = sign_client(ca, user, groups, now=now, days=days)
    return stored.render(cluster, server, ca.certificate, pair, user=user, tls_server_name=tls_server_name)


def stale(
    content: bytes,
    server: str,
    ca: KeyPair,
    user: str,
    groups: tuple[str, ...] = (),
    *,
    now: float,
    proxy: str = "",
) -> str:
    """Why a kubeconfig must be made again; '' if it is good."""
    try:
        config = stored.parse(content)
    except ConfigError as error:
        return str(error)
    moved = stored.leads_elsewhere(config, server=server, ca=ca.certificate, proxy=proxy)
    if moved:
        return moved
    pair = config.credential.certificate()
    if pair is None:
        return "it has no client certificate"
    return stale_client(KeyPair(pair.cert, pair.key), ca, user, groups, now=now)


def renewal(content: bytes) -> float | None:
    """When (seconds since the epoch) a kubeconfig is due; None: never by itself."""
    pair = stored.parse(content).credential.certificate()
    return None if pair is None else renew_at(pair.cert)
