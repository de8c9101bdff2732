"""How our clients reach what others run: directly, or in simulation by a proxy that stands in for the whole network."""

from __future__ import annotations

import ssl
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DialOptions:
    """How to connect to addresses of manifests, for clients of hypervisors and of workload clusters.

    `proxy` is the URL of an HTTP proxy for CONNECT; '' dials directly. `ca_pem` is trusted besides whatever the
    manifest trusts: certificates of simulated servers are verified like any others.
    """

    proxy: str = ""
    ca_pem: bytes = b""

    def tls(self, bundle: bytes | None = None) -> ssl.SSLContext:
        """Verifies servers against `bundle` (PEM; None: the system's CAs). Raises ValueError if it is not PEM."""
        if bundle is None:
            made = ssl.create_default_context()
        else:
            try:
                # An empty one would not be refused but taken for "the system's".
                made = ssl.create_default_context(cadata=bundle.decode("ascii") or "empty")
            except (ssl.SSLError, UnicodeDecodeError, ValueError):
                raise ValueError("the trust bundle contains no PEM certificate") from None
        # Own authorities are often made without the key-identifier extensions that the strict mode asks for.
        made.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
        if self.ca_pem:
            made.load_verify_locations(cadata=self.ca_pem.decode("ascii"))
        return made


DIRECT = DialOptions()
