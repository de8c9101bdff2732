"""TLS towards an API server: its certificate is verified, ours is shown."""

from __future__ import annotations

import ssl
import sys
import tempfile
import time
from collections.abc import Callable

from homeport.client.config import Config, ConfigError
from homeport.client.credential import REREAD_SECONDS, Certificate
from homeport.client.wire.resumption import ResumingContext


class Authority:
    """The authority of a server, read again from its file when somebody renews that. Looking now and then is enough:
    the old and the new one are in the file together for a while."""

    def __init__(self, config: Config, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._file = config.ca_file
        self._known = config.ca
        self._monotonic = monotonic
        self._looked = monotonic()

    def read(self) -> bytes | None:
        """The same object as before, unless it has changed."""
        now = self._monotonic()
        if self._file is None or now - self._looked < REREAD_SECONDS:
            return self._known
        self._looked = now
        try:
            found = self._file.read_bytes()
            ssl.create_default_context(cadata=found.decode("ascii"))
        except (OSError, ssl.SSLError, ValueError):
            return self._known  # it may be written just now, and what we have is the best there is
        if found != self._known:
            self._known = found
        return self._known


def context(config: Config, certificate: Certificate | None) -> ssl.SSLContext:
    # The system's authorities take a tenth of a second to read: only where they are asked.
    if config.insecure:
        made = _trusting_anybody()
    elif config.ca is not None:
        made = _trusting_only(config)
    else:
        made = ssl.create_default_context()
    made.set_alpn_protocols(["http/1.1"])
    if certificate is not None:
        _load(made, certificate, config.server)
    return made


def grpc_context(authority: bytes, identity: bytes) -> ssl.SSLContext:
    """For gRPC: trusts `authority` alone, and shows `identity`, a certificate with its key. All are PEM."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    # Authorities that other tools made often lack what strict checks ask for.
    made.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
    made.load_verify_locations(cadata=authority.decode("ascii"))
    with tempfile.NamedTemporaryFile(prefix="homeport-") as file:  # OpenSSL reads files alone; only we can read it
        file.write(identity)
        file.flush()
        made.load_cert_chain(file.name)
    made.set_alpn_protocols(["h2"])
    return made


def _trusting_anybody() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made


def _trusting_only(config: Config) -> ssl.SSLContext:
    """A named authority replaces those of the system."""
    assert config.ca is not None
    try:
        made = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
        made.load_verify_locations(cadata=config.ca.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError):
        raise ConfigError(f"the certificate authority for {config.server} is not a PEM certificate") from None
    if sys.version_info >= (3, 13):  # as ssl.create_default_context does
        made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    # Own authorities are often made without the key-identifier extensions that the strict mode asks for.
    made.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
    return made


def _load(made: ssl.SSLContext, certificate: Certificate, server: str) -> None:
    """OpenSSL reads a chain from a file alone: one that only we can read, and gone at once."""
    with tempfile.NamedTemporaryFile(prefix="homeport-") as file:
        file.write(certificate.cert.rstrip() + b"\n" + certificate.key)
        file.flush()
        try:
            made.load_cert_chain(file.name, password=_no_password)
        except (ssl.SSLError, ConfigError) as error:
            why = getattr(error, "reason", None) or str(error)
            raise ConfigError(f"the client certificate or key for {server} can't be used: {why}") from None


def _no_password() -> str:
    raise ConfigError("the key is encrypted; remove its passphrase")
