"""The Secret `<cluster>-kubeconfig`: how everybody gets into a workload cluster."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog
from cryptography import x509

from homeport.api.meta import Unstructured
from homeport.capi.name import CLUSTER_NAME_LABEL, KUBECONFIG_SUFFIX, SECRET_TYPE, SECRET_VALUE
from homeport.capi.object.ownership import controller_of
from homeport.capi.remote.pki import SECRET, KeyPair, PkiError, client_certificate, secret_data
from homeport.client import kubeconfig as files
from homeport.client.config import Config, ConfigError
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.machinery import yaml

log = structlog.get_logger(__name__)

ADMIN = "kubernetes-admin"
ADMIN_GROUPS = ("system:masters",)
ADMIN_DAYS = 365
# A kubeconfig in a Secret is somebody else's text: it must not make us read our files or run programs.
_CLUSTER_FILES = ("certificate-authority",)
_USER_FILES = ("client-certificate", "client-key", "tokenFile", "exec", "auth-provider")


def secret_key(cluster: Key) -> Key:
    return Key(cluster.namespace, cluster.name + KUBECONFIG_SUFFIX)


def cluster_of(secret: Key) -> Key | None:
    """The cluster whose kubeconfig a Secret of this name would be."""
    if not secret.name.endswith(KUBECONFIG_SUFFIX):
        return None
    return Key(secret.namespace, secret.name.removesuffix(KUBECONFIG_SUFFIX))


def server_url(host: str, port: int) -> str:
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


# -- writing ---------------------------------------------------------------------------------------------------------


def render(
    cluster: str,
    server: str,
    ca: bytes,
    pair: KeyPair,
    *,
    user: str = "",
    proxy: str = "",
    tls_server_name: str = "",
) -> bytes:
    """A kubeconfig with everything embedded. `ca`: PEM, what is trusted. `user`: its name, by default the cluster's
    administrator. `tls_server_name`: what the server's certificate must be valid for, if not the host of the URL."""
    user = user or f"{cluster}-admin"
    context = f"{user}@{cluster}"
    endpoint = {"server": server, "certificate-authority-data": _base64(ca)}
    if proxy:
        endpoint["proxy-url"] = proxy
    if tls_server_name:
        endpoint["tls-server-name"] = tls_server_name
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": endpoint}],
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": _base64(pair.certificate),
                    "client-key-data": _base64(pair.key),
                },
            }
        ],
        "contexts": [{"name": context, "context": {"cluster": cluster, "user": user}}],
        "current-context": context,
    }
    return yaml.dump(content).encode()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def make(cluster: str, server: str, ca: KeyPair, *, now: float, proxy: str = "") -> bytes:
    """A kubeconfig of a new administrator, good for a year."""
    admin = client_certificate(ca, ADMIN, ADMIN_GROUPS, now=now, days=ADMIN_DAYS)
    return render(cluster, server, ca.certificate, admin, proxy=proxy)


def as_secret(cluster: Key, content: bytes, owner: Mapping[str, Any] | None) -> dict[str, Any]:
    where = secret_key(cluster)
    metadata: dict[str, Any] = {
        "name": where.name,
        "namespace": where.namespace,
        "labels": {CLUSTER_NAME_LABEL: cluster.name},
    }
    if owner is not None:
        metadata["ownerReferences"] = [dict(owner)]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": SECRET_TYPE,
        "data": {SECRET_VALUE: _base64(content)},
    }


async def ensure(
    client: Client,
    cluster: Key,
    *,
    server: str,
    ca: KeyPair,
    owner: Mapping[str, Any],
    now: float,
    options: Write,
    proxy: str = "",
) -> Unstructured:
    """The Secret: made when missing, renewed when it is `owner`'s and due. One that a user brought is left alone."""
    where = secret_key(cluster)
    try:
        known = await client.get(SECRET, where)
    except NotFound:
        secret = as_secret(cluster, make(cluster.name, server, ca, now=now, proxy=proxy), owner)
        try:
            return await client.create(secret, options, kind=SECRET)
        except AlreadyExists:  # somebody was faster: what is there counts
            return await client.get(SECRET, where)
    holder = controller_of(known)
    if holder is None or holder["uid"] != owner["uid"]:
        return known
    why = stale(secret_data(known, SECRET_VALUE), server=server, ca=ca.certificate, now=now, proxy=proxy)
    if not why:
        return known
    log.info("kubeconfig renewed", cluster=str(cluster), because=why)
    content = make(cluster.name, server, ca, now=now, proxy=proxy)
    patch = {"metadata": {"resourceVersion": known.resource_version}, "data": {SECRET_VALUE: _base64(content)}}
    return await client.patch(SECRET, where, MergePatch(patch), options)


def leads_elsewhere(config: Config, *, server: str, ca: bytes, proxy: str) -> str:
    """Why a kubeconfig does not lead to this server; '' if it does."""
    if config.server != server.rstrip("/"):
        return f"the server is {server}, not {config.server}"
    if config.proxy != proxy:
        return f"the proxy is {proxy or 'none'}, not {config.proxy or 'none'}"
    if config.ca is None or config.ca.strip() != ca.strip():
        return "the cluster has another CA"
    return ""


def stale(content: bytes, *, server: str, ca: bytes, now: float, proxy: str = "") -> str:
    """Why a kubeconfig must be regenerated; '' if it is valid."""
    try:
        config = parse(content)
    except ConfigError as error:
        return str(error)
    moved = leads_elsewhere(config, server=server, ca=ca, proxy=proxy)
    if moved:
        return moved
    left = remaining(config, now)
    if left is not None and left > 1:
        return "the certificate is not valid yet: the clock was probably wrong when it was issued"
    if left is not None and left < 0.5:
        return f"the certificate has {max(0.0, left):.0%} of its time left"
    return ""


def remaining(config: Config, now: float) -> float | None:
    """The share of the client certificate's time that is left; None without one.

    Below 0: it has expired. Above 1: it is not valid yet.
    """
    pair = config.credential.certificate()
    if pair is None:
        return None
    try:
        found = x509.load_pem_x509_certificate(pair.cert)
    except ValueError:
        return 0.0
    start, end = found.not_valid_before_utc.timestamp(), found.not_valid_after_utc.timestamp()
    return (end - now) / max(1.0, end - start)


def renew_at(content: bytes) -> float | None:
    """When (seconds since the epoch) a kubeconfig is due; None: never by itself."""
    config = parse(content)
    pair = config.credential.certificate()
    if pair is None:
        return None
    found = x509.load_pem_x509_certificate(pair.cert)
    return (found.not_valid_before_utc.timestamp() + found.not_valid_after_utc.timestamp()) / 2


# -- reading ---------------------------------------------------------------------------------------------------------


def value(secret: Mapping[str, Any]) -> bytes:
    """The kubeconfig in a Secret. Raises ConfigError."""
    name = (secret.get("metadata") or {}).get("name", "")
    try:
        content = secret_data(secret, SECRET_VALUE)
    except PkiError as error:
        raise ConfigError(str(error)) from None
    if not content:
        raise ConfigError(f"Secret {name}: data[{SECRET_VALUE}] is missing: it must contain the kubeconfig")
    return content


def through(content: bytes, proxy: str) -> bytes:
    """The same kubeconfig by another proxy."""
    try:
        config = yaml.load(content, "kubeconfig")
        for each in config["clusters"]:
            each["cluster"]["proxy-url"] = proxy
    except (yaml.YamlError, TypeError, KeyError):
        return content  # whoever connects says what is wrong with it
    return yaml.dump(config).encode()


def parse(content: bytes, *, where: str = "kubeconfig", proxy: str = "") -> Config:
    """How to connect. `proxy` is used when the kubeconfig names none. Raises ConfigError; refuses what would make us
    read files of this machine or run programs on it."""
    entry = files.parse(content, Path(where))
    merged = files.merge([entry])
    for (section, name), each in merged.entries.items():
        for forbidden in {"clusters": _CLUSTER_FILES, "users": _USER_FILES}.get(section, ()):
            if each.raw(forbidden) is not None:
                raise ConfigError(
                    f"{where}: {section}[{name}].{forbidden} can't be used in a Secret: embed certificates, keys and "
                    "tokens (client-certificate-data, client-key-data, certificate-authority-data, token)"
                )
    config = files.resolve(merged)
    return dataclasses.replace(config, proxy=proxy) if proxy and not config.proxy else config
