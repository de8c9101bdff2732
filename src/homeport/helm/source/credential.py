"""User names and passwords for registries and repositories, from Secrets in the usual shapes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from homeport.helm.errors import SourceError

_ANY = ""


@dataclass(frozen=True, slots=True)
class Credential:
    """A user name and its password, or a token in the place of a password.

    `identity_token`: what a login left instead of a password, to be exchanged for the token of each request.
    """

    username: str = ""
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)

    @property
    def basic(self) -> str:
        """The value of an Authorization header."""
        pair = f"{self.username}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"


@dataclass(frozen=True, slots=True)
class Credentials:
    """By address prefix: `registry.example.com/charts` or a host. The longest one that fits is used."""

    entries: Mapping[str, Credential] = field(default_factory=dict, repr=False)
    helpers: Mapping[str, str] = field(default_factory=dict)  # programs that keep credentials, by address prefix
    source: str = ""  # where they were read, for messages

    def find(self, host: str, path: str = "") -> Credential | None:
        address = f"{host}/{path}".rstrip("/").lower()
        fitting = [prefix for prefix in self.entries if _fits(address, prefix)]
        return self.entries[max(fitting, key=len)] if fitting else None

    def need(self, host: str, path: str = "") -> Credential | None:
        """As `find`. Raises SourceError if a program keeps them, which is not run here."""
        found = self.find(host, path)
        if found is None and (helper := self.helper(host, path)):
            raise SourceError(
                f"{self.source}: the credentials for {host} are kept by the program docker-credential-{helper}, which "
                "can't be run here: write username and password, or auth, into auths"
            )
        return found

    def helper(self, host: str, path: str = "") -> str:
        """The program that keeps the credentials of this host; '' if none does."""
        address = f"{host}/{path}".rstrip("/").lower()
        fitting = [prefix for prefix in self.helpers if _fits(address, prefix)]
        return self.helpers[max(fitting, key=len)] if fitting else ""


NONE = Credentials()


def _fits(address: str, prefix: str) -> bool:
    return prefix == _ANY or address == prefix or address.startswith(f"{prefix}/")


def parse_credentials(secret: Mapping[str, Any]) -> Credentials:
    """Of a Secret with .dockerconfigjson, or with username and password, which then are for every host asked.

    Raises SourceError, which names the Secret and the key, never the content.
    """
    metadata = secret.get("metadata") or {}
    name = f"Secret {metadata.get('namespace', '')}/{metadata.get('name', '')}"
    data = {key: _decoded(name, key, value) for key, value in (secret.get("data") or {}).items()}
    for key in (".dockerconfigjson", "config.json", ".dockercfg"):
        if key in data:
            return _docker(name, key, data[key])
    if "username" in data and "password" in data:
        return Credentials({_ANY: Credential(_text(name, "username", data), _text(name, "password", data))})
    raise SourceError(
        f"{name}: expected .dockerconfigjson, or username and password; it has {sorted(data) or 'no data'}"
    )


def parse_docker(name: str, content: bytes) -> Credentials:
    """Of a Docker configuration in a file, named so in errors."""
    return _docker(name, "auths", content)


def _decoded(name: str, key: str, value: Any) -> bytes:
    try:
        return base64.b64decode(str(value), validate=True)
    except binascii.Error:
        raise SourceError(f"{name}: key {key} is not valid base64") from None


def _text(name: str, key: str, data: Mapping[str, bytes]) -> str:
    try:
        return data[key].decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise SourceError(f"{name}: key {key} is not text") from None


def _docker(name: str, key: str, content: bytes) -> Credentials:
    try:
        raw = orjson.loads(content)
        helpers = {} if key == ".dockercfg" else _helpers(raw)
        entries = raw if key == ".dockercfg" else raw.get("auths", {}) if helpers else raw["auths"]
        found = {_address(host): _credential(entry) for host, entry in entries.items()}
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError):
        raise SourceError(
            f'{name}: key {key} is not a Docker configuration: expected {{"auths": {{HOST: {{"auth": ...}}}}}}'
        ) from None
    # Entries without a password leave it to a program of the user's machine.
    usable = {address: each for address, each in found.items() if each.username or each.identity_token}
    return Credentials(usable, helpers, name)


def _helpers(raw: Mapping[str, Any]) -> dict[str, str]:
    found = {_address(host): str(helper) for host, helper in (raw.get("credHelpers") or {}).items()}
    store = raw.get("credsStore")
    return {**({_ANY: str(store)} if store else {}), **found}


def _credential(entry: Mapping[str, Any]) -> Credential:
    username, password = str(entry.get("username") or ""), str(entry.get("password") or "")
    if entry.get("auth"):
        username, _, password = base64.b64decode(entry["auth"], validate=True).decode().partition(":")
    return Credential(username, password.rstrip("\0"), str(entry.get("identitytoken") or ""))


def _address(host: str) -> str:
    """`https://index.docker.io/v1/` and `registry.example.com/charts/` alike."""
    bare = host.split("://", 1)[-1].rstrip("/").lower()
    for ending in ("/v1", "/v2"):
        bare = bare.removesuffix(ending)
    return bare
