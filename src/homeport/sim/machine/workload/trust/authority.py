"""The certificates a cluster is given: checked as the programs that use them check them, then used to sign."""

from __future__ import annotations

import base64
import datetime
import hashlib
import os
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.auth.certificate import Issuer, PrivateKey
from homeport.apiserver.auth.pki import PKI, Now, server_hosts
from homeport.runtime.clock import Clock


class CertificateProblem(ValueError):
    """A certificate or key that can't be used, in the words of the program that finds it."""


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA with its key."""

    issuer: Issuer

    @property
    def pem(self) -> bytes:
        return certs.certificate_pem(self.issuer.certificate)

    @property
    def hash(self) -> str:
        return spki_hash(self.issuer.certificate)

    def same_as(self, other: Authority) -> bool:
        return self.issuer.certificate == other.issuer.certificate


def load_authority(name: str, certificate: bytes, key: bytes, clock: Clock) -> Authority:
    """Certificate and key of a CA, in PEM. Raises CertificateProblem."""
    loaded = load_certificate(name, certificate)
    _check_ca(name, loaded, clock)
    private = load_key(name, key)
    if not certs.same_key(private, loaded):
        raise CertificateProblem(f"the private key for {name} doesn't match its certificate: x509: key does not match")
    return Authority(Issuer(loaded, private))


def load_certificate(name: str, pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as broken:
        text = (
            f"couldn't load the certificate file {name}.crt: data does not contain any valid RSA or ECDSA certificates"
        )
        raise CertificateProblem(text) from broken


def load_key(name: str, pem: bytes) -> PrivateKey:
    try:
        return certs.load_private_key(pem)
    except (ValueError, TypeError) as broken:
        text = f"couldn't load the private key file {name}.key: data does not contain a valid RSA or ECDSA private key"
        raise CertificateProblem(text) from broken


def make_authority(name: str, clock: Clock) -> Authority:
    key = certs.make_key()
    return Authority(Issuer(certs.sign_ca(key, now_of(clock)()), key))


def _check_ca(name: str, loaded: x509.Certificate, clock: Clock) -> None:
    now = now_of(clock)()
    if now > loaded.not_valid_after_utc:
        raise CertificateProblem(f"the certificate {name}.crt has expired: NotAfter {loaded.not_valid_after_utc:%c %Z}")
    if now < loaded.not_valid_before_utc:
        raise CertificateProblem(f"the certificate {name}.crt is not valid yet")
    try:
        constraints = loaded.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        constraints = None
    if constraints is None or not constraints.ca:
        raise CertificateProblem(f"the {name}.crt certificate is not a certificate authority")


def spki_hash(certificate: x509.Certificate) -> str:
    """`sha256:...` of the public key, as discovery pins it."""
    der = certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return f"sha256:{hashlib.sha256(der).hexdigest()}"


def now_of(clock: Clock) -> Now:
    return lambda: datetime.datetime.fromtimestamp(clock.now(), datetime.UTC)


class ClusterPki(PKI):
    """The PKI of a cluster that others made the authority for. Keeps nothing on disk."""

    @classmethod
    def of(cls, authority: Authority, signing_key: PrivateKey, hosts: Iterable[str], clock: Clock) -> Self:
        made = cls(Path(os.devnull), authority.issuer, signing_key, os.urandom(32), (), now_of(clock))
        made.hosts = server_hosts(*hosts)
        return made

    @property
    def server_name(self) -> str:
        """A name of the server's certificate, for those who connect by an address that it does not have."""
        return ""

    def add_hosts(self, hosts: Iterable[str]) -> bool:
        """More names for the server's certificate. True if there is one among them that it did not have."""
        wanted = server_hosts(*self.hosts, *hosts)
        changed = wanted != self.hosts
        self.hosts = wanted
        return changed

    def load_server(self, context: ssl.SSLContext) -> None:
        certs.load_pair(context, self.issuer.server(self.hosts, self.now()).pem)

    def client_kubeconfig(self, server: str, user: str, groups: tuple[str, ...], proxy: str = "") -> str:
        """A kubeconfig for a new client certificate; with `proxy` as `proxy-url`."""
        issued = self.issue_client(user, groups)
        text = self.kubeconfig(server, issued.pem)
        return (
            text.replace(f"    server: {server}\n", f"    server: {server}\n    proxy-url: {proxy}\n")
            if proxy
            else text
        )

    def cluster_info(self, server: str) -> str:
        """The kubeconfig of the ConfigMap cluster-info: an address and an authority, no credential."""
        data = base64.b64encode(self.ca_pem).decode()
        return (
            "apiVersion: v1\nclusters:\n- cluster:\n"
            f'    certificate-authority-data: {data}\n    server: {server}\n  name: ""\n'
            'contexts: null\ncurrent-context: ""\nkind: Config\npreferences: {}\nusers: null\n'
        )


class HostedPki(ClusterPki):
    """The PKI of a cluster whose control plane is given its certificates as files, the server's own included."""

    given: bytes = b""  # key and certificate of the server, PEM; none before the first Pod has brought them
    clients: bytes = b""  # the authorities that clients may come from, PEM

    @property
    def server_name(self) -> str:
        if not self.given:
            return ""
        start = self.given.index(b"-----BEGIN CERTIFICATE-----")
        names = certs.host_names(load_certificate("apiserver", self.given[start:]))
        return next((each for each in sorted(names) if each != "localhost"), "")

    def load_server(self, context: ssl.SSLContext) -> None:
        if self.clients:
            context.load_verify_locations(cadata=self.clients.decode())
        if not self.given:
            super().load_server(context)
            return
        certs.load_pair(context, self.given)
