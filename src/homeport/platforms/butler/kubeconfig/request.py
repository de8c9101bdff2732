"""Asking for a kubeconfig, from the side of the person who needs it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from homeport.api.butler.v1alpha1 import GROUP, TenantCluster
from homeport.api.certificates.v1 import CertificateSigningRequest
from homeport.api.meta import Resource
from homeport.apiserver.auth.certificate import key_pem, make_key, subject_name
from homeport.client.config import Config
from homeport.client.protocol import Client, Key
from homeport.machinery import yaml
from homeport.platforms.butler.kubeconfig.issue import USAGES, RefusedRequest, signer_name

CLUSTER_ANNOTATION = f"{GROUP}/kubeconfig-cluster"
_WHO = Resource("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)
_REQUEST = CertificateSigningRequest.__resource__
WAIT_SECONDS = 30.0
_POLL_SECONDS = 0.25

Sleep = Callable[[float], Awaitable[None]]


def render_cluster(config: Config) -> str:
    """How the cluster is reached, without credentials."""
    found: dict[str, str] = {"server": config.server}
    if config.ca is not None:
        found["certificate-authority-data"] = base64.b64encode(config.ca).decode()
    if config.proxy:
        found["proxy-url"] = config.proxy
    return orjson.dumps(found).decode()


async def request_kubeconfig(client: Client, tenant: Key, seconds: int, sleep: Sleep = asyncio.sleep) -> bytes:
    """A kubeconfig for whoever `client` is. Raises RefusedRequest and ApiError."""
    await client.get(TenantCluster, tenant)  # a wrong name is reported as such
    review = {**_WHO.type_meta}
    user = str((await client.create(review, kind=_WHO))["status"]["userInfo"]["username"])
    key = make_key()
    csr = x509.CertificateSigningRequestBuilder().subject_name(subject_name(user, ())).sign(key, hashes.SHA256())
    body = {
        **_REQUEST.type_meta,
        "metadata": {"generateName": "butler-kubeconfig-"},
        "spec": {
            "request": base64.b64encode(csr.public_bytes(Encoding.PEM)).decode(),
            "signerName": signer_name(tenant),
            "usages": list(USAGES),
            "expirationSeconds": seconds,
        },
    }
    name = (await client.create(body, kind=_REQUEST)).name
    found = await _await_answer(client, name, sleep)
    certificate = base64.b64decode(found["status"]["certificate"])
    cluster = orjson.loads(found.metadata["annotations"][CLUSTER_ANNOTATION])
    return render_kubeconfig(tenant.name, cluster, user, certificate, key_pem(key))


async def _await_answer(client: Client, name: str, sleep: Sleep) -> Any:
    for _ in range(int(WAIT_SECONDS / _POLL_SECONDS)):
        found = await client.get(_REQUEST, Key("", name))
        status = found.get("status") or {}
        if status.get("certificate"):
            return found
        for each in status.get("conditions") or ():
            if each.get("type") in ("Denied", "Failed"):
                raise RefusedRequest(str(each.get("message")))
        await sleep(_POLL_SECONDS)
    raise RefusedRequest(
        f"CertificateSigningRequest {name} was not answered within {WAIT_SECONDS:g} s: check that the cluster is Ready "
        "and that the plane runs"
    )


def render_kubeconfig(name: str, cluster: Mapping[str, str], user: str, certificate: bytes, key: bytes) -> bytes:
    """With everything embedded."""
    context = f"{user}@{name}"
    credentials = {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": dict(cluster)}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": context, "context": {"cluster": name, "user": user}}],
        "current-context": context,
    }
    return yaml.dump(content).encode()
