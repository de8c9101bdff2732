"""The cluster's certificates as files of a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from homeport.api.bootstrap.v1beta2 import ClusterConfiguration
from homeport.bootstrap.kubeadm.userdata import File
from homeport.capi.remote import pki
from homeport.capi.remote.pki import KeyPair, PkiError, Purpose
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key

_OWNER = "root:root"


@dataclass(frozen=True, slots=True)
class Needed:
    """A certificate, and where the machine wants it. A key path of '': the certificate alone."""

    purpose: Purpose
    certificate_path: str
    key_path: str


def for_control_plane(configuration: ClusterConfiguration) -> list[Needed]:
    folder = configuration.certificates_dir
    needed = [Needed(purpose, *pki.files(purpose, folder)) for purpose in pki.GENERATED]
    external = configuration.etcd.external
    if not external.endpoints:
        return needed
    return [
        *(each for each in needed if each.purpose != "etcd"),
        Needed("etcd", external.ca_file, ""),
        Needed("apiserver-etcd-client", external.cert_file, external.key_file),
    ]


class MissingCertificate(Exception):
    """A Secret with a certificate is not there yet."""


async def find(client: Client, cluster: Key, purposes: list[Purpose], *, now: float) -> dict[Purpose, KeyPair]:
    """Each by its name: a list would bring the data of all the cluster's machines along.

    Raises MissingCertificate; PkiError for one that can't do its work.
    """
    external = "apiserver-etcd-client" in purposes
    found: dict[Purpose, KeyPair] = {}
    for purpose in purposes:
        name = pki.secret_name(cluster.name, purpose)
        try:
            secret = await client.get(pki.SECRET, Key(cluster.namespace, name))
        except NotFound:
            raise MissingCertificate(_missing(name, purpose, external)) from None
        found[purpose] = pki.parse(secret, purpose, now=now, external=external)
    return found


def _missing(name: str, purpose: Purpose, external: bool) -> str:
    if external and purpose in ("etcd", "apiserver-etcd-client"):
        return f"Secret {name!r} does not exist: with an external etcd you must create it"
    return f"Secret {name!r} does not exist: the control plane creates it, or create it with tls.crt and tls.key"


async def find_authority(client: Client, cluster: Key) -> bytes:
    """The certificate of the cluster's authority: all that a worker is told. Raises as `find` does."""
    name = pki.secret_name(cluster.name, "ca")
    try:
        secret = await client.get(pki.SECRET, Key(cluster.namespace, name))
    except NotFound:
        raise MissingCertificate(_missing(name, "ca", external=False)) from None
    certificate = pki.secret_data(secret, "tls.crt")
    if not certificate:
        raise PkiError(f"Secret {name}: data[tls.crt] is missing: add the certificate in PEM")
    return certificate


def as_files(needed: list[Needed], found: Mapping[Purpose, KeyPair]) -> tuple[File, ...]:
    files: list[File] = []
    for each in needed:
        pair = found[each.purpose]
        files.append(File(each.certificate_path, pair.certificate.decode(), _OWNER, "0640"))
        if each.key_path and pair.key:
            files.append(File(each.key_path, pair.key.decode(), _OWNER, "0600"))
    return tuple(files)
