"""Where an API server is and how to prove who asks: what kubeconfig files and service accounts boil down to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from homeport.client.credential import Credential, Static

USER_AGENT_NAME = "homeport"


class ConfigError(ValueError):
    """A configuration that can't be used. The message names the file and the field, never a secret."""


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Act as somebody else; the server checks that the credential may."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def headers(self) -> list[tuple[str, str]]:
        found = [("Impersonate-User", self.user), ("Impersonate-Uid", self.uid)]
        found += [("Impersonate-Group", group) for group in self.groups]
        found += [(f"Impersonate-Extra-{name}", value) for name, values in self.extra for value in values]
        return [(name, value) for name, value in found if value]


@dataclass(frozen=True, slots=True)
class Config:
    """One server and one identity. `namespace` is where commands work when none is named."""

    server: str
    credential: Credential = field(default_factory=Static)
    ca: bytes | None = None  # PEM; None: the system's authorities
    ca_file: Path | None = None  # where somebody else renews it
    insecure: bool = False  # do not verify the server's certificate
    server_name: str = ""  # the name to expect in the server's certificate, if not the host of `server`
    proxy: str = ""
    namespace: str = "default"
    impersonate: Impersonation = field(default_factory=Impersonation)

    def __post_init__(self) -> None:
        if not self.server.startswith(("http://", "https://")):
            raise ConfigError(f"server {self.server!r}: must start with https:// or http://")
        if self.insecure and self.ca is not None:
            raise ConfigError("insecure-skip-tls-verify and a certificate authority exclude each other: remove one")
