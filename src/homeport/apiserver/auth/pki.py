"""DIR/pki: everything secret that the server makes for itself at its first start.

    ca.key, ca.crt   the authority that signs the server's and the clients' certificates
    server.pem       the server's key and certificate, renewed by itself
    admin.pem        key and certificate of the administrator, renewed by itself
    sa.key           signs ServiceAccount tokens
    secrets.key      encrypts Secrets at rest

`ca.crt` is written last of the four that can't be made again. While it is missing and nothing was issued, a first start
was interrupted and goes on with what is there; once it exists, a missing or damaged file is an error and never a reason
to make a new one: a new CA would lock out every client, a new secrets key would lose every Secret.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import os
import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import structlog
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.auth.certificate import EcKey, Identity, Issuer, PrivateKey
from homeport.apiserver.auth.file import make_private_dir, tighten, write_private
from homeport.client.wire.small_read import SmallReads

log = structlog.get_logger(__name__)

RENEW_BEFORE = datetime.timedelta(days=30)
CA_WARN_BEFORE = datetime.timedelta(days=90)
SERVICE_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
SECRETS_KEY_BYTES = 32
ADMIN = ("kubernetes-admin", ("system:masters",))

_CURE_ROOT = "put the file back from a backup; the server can't make it again"
_CURE_LEAF = "remove the file: a new one is created at the next start"

Now = Callable[[], datetime.datetime]


def utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class PkiError(Exception):
    """Something in DIR/pki can't be used. Names the file and the cure."""

    def __init__(self, path: Path, what: str, cure: str) -> None:
        super().__init__(f"{path}: {what}; {cure}")
        self.path = path


def server_hosts(*extra: str) -> tuple[str, ...]:
    """What the server certificate must be good for: loopback, the host's name, the service's names, and `extra`."""
    wanted = ["127.0.0.1", "::1", "localhost", socket.gethostname(), *SERVICE_NAMES, *extra]
    return tuple(dict.fromkeys(host for raw in wanted if (host := _host(raw))))


def _host(raw: str) -> str:
    """Normal form of a name or address; '' for what can't stand in a certificate (0.0.0.0, names beyond ASCII)."""
    text = raw.strip().strip("[]")
    try:
        address = ip_address(text)
    except ValueError:
        return text.rstrip(".").lower() if text.isascii() and text else ""
    return "" if address.is_unspecified else str(address)


@dataclass(slots=True)
class PKI:
    directory: Path
    issuer: Issuer
    signing_key: PrivateKey
    secrets_key: bytes = field(repr=False)
    hosts: tuple[str, ...]
    now: Now

    @classmethod
    def ensure(
        cls, directory: Path, hosts: Iterable[str] = (), *, data_exists: bool = False, now: Now = utc_now
    ) -> PKI:
        """Loads DIR/pki, or makes it. `hosts` are names of the server besides those of `server_hosts`.

        `data_exists` says that the data directory holds a database: then the keys that belong to it must be there too.
        """
        root = _Root(directory, now)
        make_private_dir(directory)
        if not root.complete:
            root.create(data_exists=data_exists)
        pki = cls(directory, root.load_issuer(), root.load_signing_key(), root.load_secrets_key(), (), now)
        pki.hosts = server_hosts(*hosts)
        pki.renew()
        return pki

    @property
    def ca_pem(self) -> bytes:
        return certs.certificate_pem(self.issuer.certificate)

    @property
    def server_path(self) -> Path:
        return self.directory / "server.pem"

    @property
    def admin_path(self) -> Path:
        return self.directory / "admin.pem"

    @property
    def tokens_path(self) -> Path:
        """The optional file of static tokens."""
        return self.directory / "tokens.csv"

    def renew(self) -> bool:
        """Issues the server's and the administrator's certificates where missing, near expiry or for other hosts.

        True if the server's changed; a running server then calls `load_server` on its context.
        """
        changed = self._ensure_leaf(self.server_path, self.hosts, lambda: self.issuer.server(self.hosts, self.now()))
        self._ensure_leaf(self.admin_path, None, lambda: self.issue_client(*ADMIN))
        return changed

    def _ensure_leaf(self, path: Path, hosts: Sequence[str] | None, issue: Callable[[], Identity]) -> bool:
        if path.exists():
            tighten(path)
            leaf = _load_identity(path)
            # Not valid yet: the clock was wrong when it was issued.
            valid = leaf.not_valid_before_utc <= self.now() < leaf.not_valid_after_utc - RENEW_BEFORE
            if valid and self._ours(leaf):
                if hosts is None or frozenset(hosts) == certs.host_names(leaf):
                    return False
        write_private(path, issue().pem)
        log.info("certificate issued", path=str(path))
        return True

    def _ours(self, leaf: x509.Certificate) -> bool:
        try:
            leaf.verify_directly_issued_by(self.issuer.certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True

    def issue_client(self, name: str, organizations: Sequence[str] = (), *, days: int = certs.LEAF_DAYS) -> Identity:
        """A client certificate: `name` becomes the user, `organizations` the groups."""
        return self.issuer.client(name, organizations, self.now(), days=days)

    def server_context(self) -> ssl.SSLContext:
        """TLS 1.2 and later; a client may show a certificate, which then must be signed by our CA."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sslobject_class = SmallReads
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=self.ca_pem.decode())
        context.set_alpn_protocols(["http/1.1"])
        self.load_server(context)
        return context

    def load_server(self, context: ssl.SSLContext) -> None:
        """Puts the current server certificate into a context, also one in use: new connections get it."""
        context.load_cert_chain(self.server_path)

    def client_context(self, path: Path | None = None) -> ssl.SSLContext:
        """For our own calls to the server. `path` names a file with key and certificate, such as `admin_path`."""
        context = ssl.create_default_context(cadata=self.ca_pem.decode())
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if path is not None:
            context.load_cert_chain(path)
        return context

    def kubeconfig(self, server: str, identity: bytes | None = None) -> str:
        """A kubeconfig with everything embedded. `identity`: PEM of a key and its certificate (default: admin)."""
        pem = identity if identity is not None else self.admin_path.read_bytes()
        key, certificate = _split_identity(pem)
        user = f"{ADMIN[0]}@homeport"
        return "\n".join(
            (
                "apiVersion: v1",
                "kind: Config",
                "clusters:",
                "- name: homeport",
                "  cluster:",
                f"    server: {server}",
                f"    certificate-authority-data: {base64.b64encode(self.ca_pem).decode()}",
                "users:",
                f"- name: {user}",
                "  user:",
                f"    client-certificate-data: {base64.b64encode(certificate).decode()}",
                f"    client-key-data: {base64.b64encode(key).decode()}",
                "contexts:",
                "- name: homeport",
                "  context:",
                "    cluster: homeport",
                f"    user: {user}",
                "current-context: homeport",
                "",
            )
        )

    def write_kubeconfig(self, path: Path, server: str) -> None:
        """Mode 0600, whole or not at all; left alone when it already says this."""
        content = self.kubeconfig(server).encode()
        if path.exists() and path.read_bytes() == content:
            tighten(path)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, content)


class _Root:
    """The four files that can't be made again."""

    def __init__(self, directory: Path, now: Now) -> None:
        self.now = now
        self.directory = directory
        self.ca_key = directory / "ca.key"
        self.ca_crt = directory / "ca.crt"
        self.sa_key = directory / "sa.key"
        self.secrets = directory / "secrets.key"

    @property
    def complete(self) -> bool:
        return self.ca_crt.exists()

    def create(self, *, data_exists: bool) -> None:
        issued = [name for name in ("server.pem", "admin.pem") if (self.directory / name).exists()]
        if issued:
            raise PkiError(self.ca_crt, f"missing, though {issued[0]} was signed by it", _CURE_ROOT)
        for path in (self.secrets, self.sa_key):
            if data_exists and not path.exists():
                raise PkiError(path, "missing, though the database was written with it", _CURE_ROOT)
        if not self.secrets.exists():
            write_private(self.secrets, base64.b64encode(os.urandom(SECRETS_KEY_BYTES)) + b"\n")
        for path in (self.sa_key, self.ca_key):
            if not path.exists():
                write_private(path, certs.key_pem(certs.make_key()))
        key = _load_key(self.ca_key)
        write_private(self.ca_crt, certs.certificate_pem(certs.sign_ca(key, self.now())))
        log.info("certificate authority created", path=str(self.ca_crt))

    def load_issuer(self) -> Issuer:
        key = _load_key(self.ca_key)
        certificate = _load_certificate(self.ca_crt, _CURE_ROOT)
        if not certs.same_key(key, certificate):
            raise PkiError(self.ca_key, "does not belong to ca.crt", "put both back from the same backup")
        left = certificate.not_valid_after_utc - self.now()
        renewal = (
            "move ca.crt, ca.key, server.pem and admin.pem away but leave sa.key and secrets.key, start again, and "
            "hand out the new kubeconfig"
        )
        if left <= datetime.timedelta(0):
            raise PkiError(self.ca_crt, f"expired on {certificate.not_valid_after_utc:%Y-%m-%d}", renewal)
        if certificate.not_valid_before_utc > self.now():
            # Which of the two clocks was wrong can't be known here: a new authority could be expired tomorrow.
            since = certificate.not_valid_before_utc
            what = f"not valid before {since:%Y-%m-%d}, and the clock is at {self.now():%Y-%m-%d}"
            raise PkiError(self.ca_crt, what, f"set the clock; if it is right, {renewal}")
        if left < CA_WARN_BEFORE:
            log.warning("the certificate authority expires soon", path=str(self.ca_crt), days=left.days)
        return Issuer(certificate, key)

    def load_signing_key(self) -> EcKey:
        return _load_key(self.sa_key)

    def load_secrets_key(self) -> bytes:
        try:
            key = base64.b64decode(_read(self.secrets, _CURE_ROOT).strip(), validate=True)
        except binascii.Error as broken:
            raise PkiError(self.secrets, f"damaged ({broken})", _CURE_ROOT) from broken
        if len(key) != SECRETS_KEY_BYTES:
            raise PkiError(self.secrets, f"has {len(key)} bytes instead of {SECRETS_KEY_BYTES}", _CURE_ROOT)
        return key


def _read(path: Path, cure: str) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError as missing:
        raise PkiError(path, "missing", cure) from missing
    except OSError as unreadable:
        raise PkiError(path, f"can't be read ({unreadable.strerror})", "correct its permissions") from unreadable
    tighten(path)
    return content


def _load_key(path: Path) -> EcKey:
    content = _read(path, _CURE_ROOT)
    try:
        return certs.load_key(content)
    except (ValueError, TypeError) as broken:
        raise PkiError(path, "damaged (contains no EC P-256 private key in PEM format)", _CURE_ROOT) from broken


def _load_certificate(path: Path, cure: str) -> x509.Certificate:
    content = _read(path, cure)
    try:
        return x509.load_pem_x509_certificate(content)
    except ValueError as broken:
        raise PkiError(path, "damaged (contains no PEM certificate)", cure) from broken


def _load_identity(path: Path) -> x509.Certificate:
    certificate = _load_certificate(path, _CURE_LEAF)
    try:
        key = certs.load_key(_read(path, _CURE_LEAF))
    except (ValueError, TypeError) as broken:
        raise PkiError(path, "damaged (contains no EC P-256 private key in PEM format)", _CURE_LEAF) from broken
    if not certs.same_key(key, certificate):
        raise PkiError(path, "damaged (key and certificate don't belong together)", _CURE_LEAF)
    return certificate


def _split_identity(pem: bytes) -> tuple[bytes, bytes]:
    mark = b"-----BEGIN CERTIFICATE-----"
    key, _, rest = pem.partition(mark)
    return key, mark + rest
