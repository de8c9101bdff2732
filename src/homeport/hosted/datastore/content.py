"""The values of a DataStore, looked up: certificates, keys, user and password."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field

from homeport.api.steward.v1alpha1 import AnyDataStore, ContentRef
from homeport.capi.remote.pki import SECRET, KeyPair, secret_data
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key
from homeport.hosted.etcd.dial import Access, DatastoreError

MANAGED_LABEL = "homeport.dev/datastore"  # on a DataStore that Homeport runs itself


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a DataStore says, with every reference followed. `ca.key` is empty where the driver needs none."""

    ca: KeyPair
    client: KeyPair
    user: bytes = b""
    password: bytes = field(default=b"", repr=False)


def is_ours(datastore: AnyDataStore) -> bool:
    return MANAGED_LABEL in datastore.metadata.labels


def access_of(datastore: AnyDataStore, credentials: Credentials) -> Access:
    return Access(
        datastore.metadata.name, tuple(datastore.spec.endpoints), credentials.ca.certificate, credentials.client
    )


async def read_credentials(client: Client, datastore: AnyDataStore) -> Credentials:
    """Raises DatastoreError, which names the field that can't be read."""
    reader = _Reader(client, datastore.metadata.name)
    tls, auth = datastore.spec.tls_config, datastore.spec.basic_auth
    ca = certificate = user = password = key = ca_key = b""
    if tls is not None:
        authority, shown = tls.certificate_authority, tls.client_certificate
        ca = await reader.value(authority.certificate, "tlsConfig.certificateAuthority.certificate")
        ca_key = await reader.value(authority.private_key, "tlsConfig.certificateAuthority.privateKey")
        if shown is not None:
            certificate = await reader.value(shown.certificate, "tlsConfig.clientCertificate.certificate")
            key = await reader.value(shown.private_key, "tlsConfig.clientCertificate.privateKey")
    if auth is not None:
        user = await reader.value(auth.username, "basicAuth.username")
        password = await reader.value(auth.password, "basicAuth.password")
    return Credentials(KeyPair(ca, ca_key), KeyPair(certificate, key), user, password)


class _Reader:
    def __init__(self, client: Client, datastore: str) -> None:
        self._client = client
        self._datastore = datastore

    async def value(self, ref: ContentRef | None, field_path: str) -> bytes:
        if ref is None or not ref.given:
            return b""
        where = f"DataStore {self._datastore}: spec.{field_path}"
        if ref.content:
            try:
                return base64.b64decode(ref.content, validate=True)
            except (binascii.Error, ValueError):
                raise DatastoreError("InvalidDataStore", f"{where}.content is not base64: replace it") from None
        secret = ref.secret_reference
        assert secret is not None
        key = Key(secret.namespace or "default", secret.name)
        try:
            found = await self._client.get(SECRET, key)
        except NotFound:
            raise DatastoreError("SecretNotFound", f"{where}: Secret {key} does not exist: create it") from None
        value = secret_data(found, secret.key_path)
        if not value:
            text = f"{where}: Secret {key} has no key {secret.key_path!r}: add it"
            raise DatastoreError("SecretNotFound", text)
        return value
