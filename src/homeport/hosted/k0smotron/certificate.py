"""The certificates of a control plane: authorities made once, and what they sign, which is renewed in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.meta import Unstructured
from homeport.capi.name import CLUSTER_NAME_LABEL, SECRET_TYPE
from homeport.capi.object.ownership import controller_of
from homeport.capi.remote import pki
from homeport.capi.remote.pki import GENERATED, SECRET, KeyPair, PkiError, Purpose, secret_data, secret_name
from homeport.client.absence import find_object
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Client, Key, Write
from homeport.hosted.certificate import sign_client, sign_peer, sign_server, stale_client, stale_server
from homeport.hosted.k0smotron.pod.ingress import proxy_names
from homeport.hosted.k0smotron.pod.subject import Subject
from homeport.hosted.ownership import is_ours

Authorities = dict[Purpose, KeyPair]

ETCD_CLIENT = "apiserver-etcd-client"
PROXY = "ingress-haproxy"


def etcd_hosts(subject: Subject) -> list[str]:
    """Names by which etcd's clients and members know a member."""
    service = subject.names.etcd
    inside = f"{service}.{subject.namespace}.svc"
    names = [service, inside, f"{inside}.cluster.local"]
    return ["127.0.0.1", "localhost", *names, *(f"*.{each}" for each in names)]


class Certificates:
    """`client`: of the management cluster, where all certificates are."""

    def __init__(self, client: Client, write: Write) -> None:
        self._client = client
        self._write = write

    async def hold_authorities(
        self,
        subject: Subject,
        owner: Mapping[str, Any],
        *,
        parent: Mapping[str, Any] | None,
        running: bool,
        now: float,
    ) -> Authorities:
        """`parent`: the control plane that made the Cluster; it makes the authorities, too.

        `running`: nodes and kubeconfigs trust them already, so that a lost one is not made again.

        Raises PkiError when one is missing or can't be used.
        """
        key = Key(subject.namespace, subject.name)
        found: Authorities = {}
        for purpose in GENERATED:
            name = subject.certificate(purpose)
            where = Key(subject.namespace, name)
            secret = await self._get(where)
            if secret is None and name != secret_name(subject.name, purpose):
                raise PkiError(
                    f"Secret {where} of spec.certificateRefs does not exist: create it with tls.crt and tls.key"
                )
            if secret is None and running:
                raise PkiError(
                    f"Secret {where} is missing and can't be created again for a running control plane: restore it "
                    "from a backup"
                )
            if secret is None:
                made = await pki.generate([purpose], now=now)
                secret = await self._create(pki.as_secret(key, purpose, made[purpose], owner))
            _check_owner(secret, where, owner, parent)
            found[purpose] = pki.parse(secret, purpose, now=now)
        return found

    async def hold_leaves(
        self, subject: Subject, authorities: Authorities, owner: Mapping[str, Any], *, now: float
    ) -> dict[str, KeyPair]:
        """Of etcd and of the proxies on nodes, as far as the control plane has them."""
        found: dict[str, KeyPair] = {}
        if subject.storage == "etcd":
            authority, hosts = authorities["etcd"], etcd_hosts(subject)
            for purpose in ("etcd-server", "etcd-peer"):
                found[purpose] = await self._hold(
                    subject,
                    purpose,
                    owner,
                    stale=lambda pair, ca=authority, names=hosts: stale_server(pair, ca, names, now=now),
                    make=lambda name=purpose, ca=authority, names=hosts: sign_peer(ca, name, names, now=now),
                )
            found[ETCD_CLIENT] = await self._hold(
                subject,
                ETCD_CLIENT,
                owner,
                stale=lambda pair: stale_client(pair, authority, ETCD_CLIENT, now=now),
                make=lambda: sign_client(authority, ETCD_CLIENT, now=now),
            )
        if subject.spec.ingress is not None:
            ca, names = authorities["ca"], proxy_names(subject)
            found[PROXY] = await self._hold(
                subject,
                PROXY,
                owner,
                stale=lambda pair: stale_server(pair, ca, names, now=now),
                make=lambda: sign_server(ca, names, now=now),
            )
        return found

    async def _hold(
        self, subject: Subject, purpose: str, owner: Mapping[str, Any], *, stale: Any, make: Any
    ) -> KeyPair:
        where = Key(subject.namespace, subject.certificate(purpose))
        secret = await self._get(where)
        if where.name != secret_name(subject.name, purpose):
            if secret is None:
                raise PkiError(
                    f"Secret {where} of spec.certificateRefs does not exist: create it with tls.crt and tls.key"
                )
            return _pair(secret)
        if secret is not None and not stale(_pair(secret)):
            return _pair(secret)
        if secret is not None and not is_ours(secret, owner):
            raise PkiError(f"Secret {where} can't be used and belongs to something else: {stale(_pair(secret))}")
        made: KeyPair = make()
        body = render_secret(subject, where.name, made, owner)
        if secret is None:
            return _pair(await self._create(body))
        return _pair(await self._client.apply(body, self._write, kind=SECRET, force=True))

    async def _get(self, key: Key) -> Unstructured | None:
        return await find_object(self._client, SECRET, key)

    async def _create(self, body: dict[str, Any]) -> Unstructured:
        try:
            return await self._client.create(body, self._write, kind=SECRET)
        except AlreadyExists:  # somebody was faster: what is there counts
            meta = body["metadata"]
            return await self._client.get(SECRET, Key(meta["namespace"], meta["name"]))


def _check_owner(secret: Unstructured, where: Key, *owners: Mapping[str, Any] | None) -> None:
    """What a user brought has no controller. With the authority of another cluster, either could enter the other."""
    holder = controller_of(secret)
    if holder is None or any(owner is not None and is_ours(secret, owner) for owner in owners):
        return
    raise PkiError(
        f"Secret {where} belongs to {holder['kind']} {holder['name']}, another control plane: give one of them another "
        "name"
    )


def render_secret(subject: Subject, name: str, pair: KeyPair, owner: Mapping[str, Any]) -> dict[str, Any]:
    made = pki.as_secret(Key(subject.namespace, subject.name), "ca", pair, owner)
    metadata = {**made["metadata"], "name": name, "labels": {CLUSTER_NAME_LABEL: subject.name}}
    return {**made, "metadata": metadata, "type": SECRET_TYPE}


def _pair(secret: Unstructured) -> KeyPair:
    return KeyPair(secret_data(secret, "tls.crt"), secret_data(secret, "tls.key"))
