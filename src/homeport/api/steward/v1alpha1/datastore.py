"""DataStore."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Bytes, Conditions
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Atomic, Enum, Needed, Rule, Size
from homeport.api.steward.v1alpha1.group import GROUP
from homeport.api.steward.v1alpha1.spec import UNCHANGED


class SecretReference(Model):
    __schema__ = (Atomic(),)

    key_path: Annotated[str, Needed(), Size(1)] = ""
    name: str = ""
    namespace: str = ""


class ContentRef(Model):
    """A value: written here in base64, or in a Secret."""

    content: Bytes = ""
    secret_reference: SecretReference | None = None

    @property
    def given(self) -> bool:
        return bool(self.content) or self.secret_reference is not None


class BasicAuth(Model):
    password: Annotated[ContentRef, Needed()] = msgspec.field(default_factory=ContentRef)
    username: Annotated[ContentRef, Needed()] = msgspec.field(default_factory=ContentRef)


class CertificateAuthority(Model):
    certificate: Annotated[ContentRef, Needed()] = msgspec.field(default_factory=ContentRef)
    private_key: ContentRef | None = None


class ClientCertificate(Model):
    certificate: Annotated[ContentRef, Needed()] = msgspec.field(default_factory=ContentRef)
    private_key: Annotated[ContentRef, Needed()] = msgspec.field(default_factory=ContentRef)


class TLSConfig(Model):
    certificate_authority: Annotated[CertificateAuthority, Needed()] = msgspec.field(
        default_factory=CertificateAuthority
    )
    client_certificate: ClientCertificate | None = None


DRIVERS = ("etcd", "MySQL", "PostgreSQL", "NATS")


def _given(path: str) -> str:
    """A CEL expression: the value at this path below spec is there."""
    parts = path.split(".")
    whole = " && ".join(f"has(self.{'.'.join(parts[: number + 1])})" for number in range(len(parts)))
    return f"({whole} && (has(self.{path}.content) || has(self.{path}.secretReference)))"


def _needs(when: str, path: str) -> Rule:
    return Rule(f"!({when}) || {_given(path)}", f"spec.{path} needs content or secretReference")


_ETCD, _OTHER = "self.driver == 'etcd'", "self.driver != 'etcd'"


class DataStoreSpec(Model):
    __schema__ = (
        _needs(_ETCD, "tlsConfig.certificateAuthority.privateKey"),
        _needs(_ETCD, "tlsConfig.clientCertificate.certificate"),
        _needs(_ETCD, "tlsConfig.clientCertificate.privateKey"),
        _needs(
            f"{_OTHER} && has(self.tlsConfig) && has(self.tlsConfig.clientCertificate)",
            "tlsConfig.clientCertificate.certificate",
        ),
        _needs(f"{_OTHER} && has(self.basicAuth)", "basicAuth.username"),
        _needs(f"{_OTHER} && has(self.basicAuth)", "basicAuth.password"),
        Rule(f"{_ETCD} || has(self.tlsConfig) || has(self.basicAuth)", "set tlsConfig or basicAuth for this driver"),
    )

    basic_auth: BasicAuth | None = None
    driver: Annotated[
        str, Needed(), Enum(DRIVERS), Rule(UNCHANGED, "driver is immutable: create another DataStore")
    ] = ""
    endpoints: Annotated[list[str], Needed(), Size(1)] = []
    tls_config: TLSConfig | None = None


class DataStoreStatus(Model):
    """Upstream has no conditions here. `Ready` says whether the datastore can be used."""

    conditions: Conditions = []
    used_by: list[str] = []


class AnyDataStore(Object):
    spec: DataStoreSpec = msgspec.field(default_factory=DataStoreSpec)
    status: DataStoreStatus = msgspec.field(default_factory=DataStoreStatus)


@resource(GROUP, "v1alpha1", "DataStore", "datastores", namespaced=False)
class DataStore(AnyDataStore):
    """A DataStore is where the data of TenantControlPlanes is kept: an etcd, or a database that kine speaks to."""
