"""How our clients reach what others run: directly, or in simulation by a proxy that stands in for the whole network."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from homeport.client.wire.small_read import SmallReads


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
        made.sslobject_class = SmallReads
        # Own authorities are often made without the key-identifier extensions that the strict mode asks for.
        made.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
        if self.ca_pem:
            made.load_verify_locations(cadata=self.ca_pem.decode("ascii"))
        return made


DIRECT = DialOptions()


def is_own_address(text: str) -> bool:
    """Whether an IP address means this machine, or its link, on which cloud machines get their credentials: another
    host than the author of a manifest may think of. False for names: they mean what they resolve to."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    return address.is_loopback or address.is_link_local or address.is_unspecified


def is_own_host(host: str) -> bool:
    name = host.rstrip(".").lower()
    return name == "localhost" or name.endswith(".localhost") or is_own_address(host.strip("[]"))
