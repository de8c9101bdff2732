"""/etc/kubernetes/pki: what is there is checked and used, what is missing is made by `init` and missed by `join`."""

from __future__ import annotations

from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.auth.certificate import PrivateKey
from homeport.runtime.clock import Clock
from homeport.sim.machine.disk import Disk
from homeport.sim.machine.kubeadm.config import KubeadmError
from homeport.sim.machine.workload.trust.authority import (
    Authority,
    CertificateProblem,
    load_authority,
    load_certificate,
    load_key,
    make_authority,
)

FOLDER = "/etc/kubernetes/pki"


@dataclass(frozen=True, slots=True)
class ControlPlaneCertificates:
    """The certificates of a control plane."""

    cluster: Authority
    etcd: Authority | None  # None: etcd is somebody else's
    front_proxy: Authority
    signing_key: PrivateKey


def prepare(
    disk: Disk, clock: Clock, folder: str = FOLDER, *, make: bool, external_etcd: bool
) -> ControlPlaneCertificates:
    """Raises KubeadmError for what does not fit together, or, unless it may `make` it, is missing."""
    try:
        if external_etcd:
            _check_external(disk, folder)
        return ControlPlaneCertificates(
            cluster=_authority(disk, f"{folder}/ca", "ca", clock, make),
            etcd=None if external_etcd else _authority(disk, f"{folder}/etcd/ca", "etcd/ca", clock, make),
            front_proxy=_authority(disk, f"{folder}/front-proxy-ca", "front-proxy-ca", clock, make),
            signing_key=_signing_key(disk, folder, make),
        )
    except CertificateProblem as problem:
        raise KubeadmError(f"error execution phase certs: {problem}") from problem


def _authority(disk: Disk, path: str, name: str, clock: Clock, make: bool) -> Authority:
    certificate, key = disk.read(f"{path}.crt"), disk.read(f"{path}.key")
    if certificate is None and key is None and make:
        made = make_authority(name, clock)
        disk.write(f"{path}.crt", made.pem)
        disk.write(f"{path}.key", _key_pem(made.issuer.key), mode=0o600)
        return made
    for ending, content in (("crt", certificate), ("key", key)):
        if content is None:
            what = "certificate" if ending == "crt" else "private key"
            raise CertificateProblem(
                f"failure loading {what} for {name}: couldn't load the {what} file {path}.{ending}: "
                f"open {path}.{ending}: no such file or directory"
            )
    assert certificate is not None
    assert key is not None
    return load_authority(name, certificate, key, clock)


def _signing_key(disk: Disk, folder: str, make: bool) -> PrivateKey:
    private, public = disk.read(f"{folder}/sa.key"), disk.read(f"{folder}/sa.pub")
    if private is None:
        if not make:
            raise CertificateProblem(
                f"failure loading key for service account: couldn't load the private key file {folder}/sa.key: "
                f"open {folder}/sa.key: no such file or directory"
            )
        key: PrivateKey = certs.make_key()
        disk.write(f"{folder}/sa.key", _key_pem(key), mode=0o600)
        return key
    key = load_key("sa", private)
    if public is not None and not _belongs(key, public):
        raise CertificateProblem("the service account's public key sa.pub doesn't belong to its private key sa.key")
    return key


def _belongs(key: PrivateKey, public: bytes) -> bool:
    if b"BEGIN CERTIFICATE" in public:
        return certs.same_key(key, load_certificate("sa", public))
    try:
        return bool(serialization.load_pem_public_key(public) == key.public_key())
    except ValueError as broken:
        raise CertificateProblem("couldn't load the public key file sa.pub") from broken


def _check_external(disk: Disk, folder: str) -> None:
    """An etcd of somebody else needs its authority and a client certificate for it."""
    for name in ("etcd/ca.crt", "apiserver-etcd-client.crt", "apiserver-etcd-client.key"):
        if disk.read(f"{folder}/{name}") is None:
            raise CertificateProblem(f"external etcd: open {folder}/{name}: no such file or directory")
    authority = load_certificate("etcd/ca", disk.read(f"{folder}/etcd/ca.crt") or b"")
    client = load_certificate("apiserver-etcd-client", disk.read(f"{folder}/apiserver-etcd-client.crt") or b"")
    key = load_key("apiserver-etcd-client", disk.read(f"{folder}/apiserver-etcd-client.key") or b"")
    if not certs.same_key(key, client):
        raise CertificateProblem("the private key of apiserver-etcd-client doesn't match its certificate")
    try:
        client.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature) as wrong:
        raise CertificateProblem("apiserver-etcd-client.crt is not signed by etcd/ca.crt") from wrong


def _key_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
