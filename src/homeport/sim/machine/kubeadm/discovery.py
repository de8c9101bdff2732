"""How a joining machine makes sure that it talks to the right cluster, and that the cluster knows its token."""

from __future__ import annotations

import asyncio
import base64
import binascii
from dataclasses import dataclass
from typing import Any

from cryptography import x509

from homeport.apiserver.auth.decision import Attributes, describe
from homeport.apiserver.auth.source import read
from homeport.apiserver.auth.token import bootstrap
from homeport.apiserver.auth.token.jwt import TokenInvalid
from homeport.apiserver.request import User
from homeport.machinery.address import is_address
from homeport.sim.machine import yaml
from homeport.sim.machine.kubeadm.config import KubeadmError
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload.cluster import WorkloadCluster, cluster_at
from homeport.sim.machine.workload.trust.authority import spki_hash
from homeport.sim.machine.workload.trust.token import PREFIX, signature
from homeport.sim.network import split_endpoint

Json = dict[str, Any]


class RetryLater(Exception):
    """Retried until the timeout; then it is the reason of the failure."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """Where to go, whom to expect there and what to show."""

    endpoint: tuple[str, int]
    token: str = ""
    hashes: tuple[str, ...] = ()  # of the authority's public key
    authority: bytes = b""  # or the authority itself, PEM
    unsafe: bool = False

    @property
    def shown(self) -> str:
        return f"{self.endpoint[0]}:{self.endpoint[1]}"


def read_discovery(machine: Machine, given: Json) -> Discovery:
    tls_token = str(given.get("tlsBootstrapToken") or "")
    if given.get("file"):
        return _from_file(machine, str(given["file"].get("kubeConfigPath") or ""), tls_token)
    token = given.get("bootstrapToken")
    if not isinstance(token, dict):
        raise KubeadmError('discovery: Invalid value: "": bootstrapToken or file must be set')
    secret = str(token.get("token") or tls_token)
    if not bootstrap.looks_like_one(secret):
        raise KubeadmError(
            "discovery.bootstrapToken.token: Invalid value: the bootstrap token is not of the form "
            '"[a-z0-9]{6}.[a-z0-9]{16}"'
        )
    hashes = tuple(str(each) for each in token.get("caCertHashes") or ())
    unsafe = bool(token.get("unsafeSkipCAVerification"))
    if not hashes and not unsafe:
        raise KubeadmError(
            "discovery.bootstrapToken: Invalid value: using token-based discovery without caCertHashes can be unsafe. "
            "Set unsafeSkipCAVerification as true in your kubeadm config file to continue"
        )
    try:
        endpoint = split_endpoint(str(token.get("apiServerEndpoint") or ""))
    except ValueError as wrong:
        raise KubeadmError(f"discovery.bootstrapToken.apiServerEndpoint: {wrong}") from wrong
    return Discovery(endpoint, secret, hashes, unsafe=unsafe)


def _from_file(machine: Machine, path: str, token: str) -> Discovery:
    text = machine.disk.text(path)
    if text is None:
        raise KubeadmError(f"failed to load kubeconfig: open {path}: no such file or directory")
    return read_kubeconfig(text, token)


def read_kubeconfig(text: str, token: str = "") -> Discovery:
    """Endpoint, authority and token of a kubeconfig. Raises KubeadmError."""
    try:
        config = yaml.load(text)
        named = {each["name"]: each for each in config.get("clusters") or ()}
        contexts = {each["name"]: each["context"] for each in config.get("contexts") or ()}
        context = contexts.get(config.get("current-context") or "", {})
        cluster = named.get(context.get("cluster", ""), next(iter(named.values())))["cluster"]
        users = {each["name"]: each.get("user") or {} for each in config.get("users") or ()}
        user = users.get(context.get("user", ""), {})
        authority = base64.b64decode(cluster.get("certificate-authority-data") or "")
        endpoint = split_endpoint(str(cluster["server"]))
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, StopIteration, ValueError, binascii.Error) as broken:
        raise KubeadmError(f"failed to load kubeconfig: {broken}") from broken
    return Discovery(endpoint, token or str(user.get("token") or ""), authority=authority)


async def discover(machine: Machine, wanted: Discovery, seconds: float) -> WorkloadCluster:
    """The cluster at the endpoint, once it has proved who it is and knows the token."""
    deadline = machine.clock.monotonic() + seconds
    last = ""
    while True:
        try:
            return look(machine, wanted)
        except RetryLater as reason:
            if str(reason) != last:
                last = str(reason)
                machine.console.say(f"[discovery] Failed to request cluster-info, will try again: {last}")
            if machine.clock.monotonic() >= deadline:
                raise KubeadmError(
                    "error execution phase preflight: couldn't validate the identity of the API Server: "
                    f"{last}: context deadline exceeded"
                ) from reason
        await asyncio.sleep(machine.pace.poll)


def look(machine: Machine, wanted: Discovery, request: str = "") -> WorkloadCluster:
    """`request`: what the program asks for, as it shows in its errors. Raises RetryLater, KubeadmError."""
    where = request or f'Get "https://{wanted.shown}/api/v1/namespaces/kube-public/configmaps/cluster-info?timeout=10s"'
    host = wanted.endpoint[0]
    if "dns" in machine.lacks and not is_address(host):
        raise RetryLater(f"{where}: dial tcp: lookup {host}: Temporary failure in name resolution")
    try:
        cluster = cluster_at(machine.network, machine.host.name, *wanted.endpoint)
    except OSError as error:
        raise RetryLater(f"{where}: dial tcp {wanted.shown}: {error.strerror or error}") from error
    if cluster is None:
        raise RetryLater(f"{where}: tls: first record does not look like a TLS handshake")
    if wanted.authority:
        _check_authority(cluster, wanted, where)
    elif cluster.facts.flavour == "kubeadm":
        _check_cluster_info(cluster, wanted)
    if cluster.hosted:
        cluster.facts.endpoint = wanted.endpoint  # Pods don't know the address that leads to them
    return cluster


def _check_authority(cluster: WorkloadCluster, wanted: Discovery, where: str) -> None:
    try:
        expected = x509.load_pem_x509_certificates(wanted.authority)
    except ValueError as broken:
        raise KubeadmError(f"failed to load kubeconfig: certificate-authority-data: {broken}") from broken
    if cluster.pki.issuer.certificate not in expected:
        raise RetryLater(f"{where}: tls: failed to verify certificate: x509: certificate signed by unknown authority")


def _check_cluster_info(cluster: WorkloadCluster, wanted: Discovery) -> None:
    store = cluster.server.store
    info = read(store, "configmaps", "kube-public", "cluster-info")
    if info is None:
        raise RetryLater('configmaps "cluster-info" not found')
    anonymous = User("system:anonymous", ("system:unauthenticated",))
    asked = Attributes(anonymous, "get", "", "v1", "configmaps", "", "kube-public", "cluster-info")
    if not cluster.server.rbac.authorize(asked).allowed:
        raise RetryLater(f'configmaps "cluster-info" is forbidden: {describe(asked)}')
    _check_signature(info, wanted)
    if wanted.unsafe and not wanted.hashes:
        return
    shown = yaml.load((info.get("data") or {}).get("kubeconfig") or "") or {}
    try:
        pem = base64.b64decode(shown["clusters"][0]["cluster"]["certificate-authority-data"])
        found = spki_hash(x509.load_pem_x509_certificate(pem))
    except (KeyError, IndexError, TypeError, ValueError) as broken:
        raise RetryLater(f"the ConfigMap cluster-info contains no valid kubeconfig: {broken}") from broken
    if found not in {each.lower() for each in wanted.hashes}:
        raise _not_trusted(
            f'cluster CA found in cluster-info ConfigMap is invalid: none of the public keys "{found}" are pinned'
        )


def _not_trusted(why: str) -> KubeadmError:
    """Not a matter of patience: kubeadm gives up at once."""
    return KubeadmError(f"error execution phase preflight: couldn't validate the identity of the API Server: {why}")


def _check_signature(info: Json, wanted: Discovery) -> None:
    """Who knows the token has signed what we are shown."""
    identity, _, secret = wanted.token.partition(".")
    data = info.get("data") or {}
    shown = data.get(PREFIX + identity)
    if shown is None:
        raise RetryLater(f'could not find a JWS signature in the cluster-info ConfigMap for token ID "{identity}"')
    if shown != signature(str(data.get("kubeconfig") or "").encode(), identity, secret):
        raise _not_trusted(
            "failed to verify JWS signature of received cluster info object, can't trust this API Server"
        )


def authenticate(cluster: WorkloadCluster, token: str) -> User:
    """Whom the token speaks for. Raises KubeadmError."""
    try:
        return cluster.server.authenticator.verify(token).user
    except TokenInvalid as invalid:
        raise KubeadmError(f"Unauthorized: {invalid}") from invalid


def require(
    cluster: WorkloadCluster, user: User, verb: str, resource: str, namespace: str = "", name: str = "", group: str = ""
) -> None:
    asked = Attributes(user, verb, group, "v1", resource, "", namespace, name)
    if not cluster.server.rbac.authorize(asked).allowed:
        raise KubeadmError(f'{resource} "{name}" is forbidden: {describe(asked)}')
