"""Provenance files: a clear text, signed with OpenPGP, that names the digest of a chart's archive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from homeport.helm.errors import SourceError
from homeport.helm.source.openpgp import ClearText, Key, OpenPgpError, Signature, parse_clear_text, parse_keys, verify
from homeport.machinery import yaml

_SEPARATOR: Final = "\n...\n"


@dataclass(frozen=True, slots=True)
class Keyring:
    """The keys that may sign charts. `parse_keyring` makes one."""

    keys: tuple[Key, ...]

    def verify(self, provenance: bytes, digest: str, where: str) -> str:
        """The fingerprint of the key that signed the archive of this digest. Raises SourceError."""
        try:
            message = parse_clear_text(provenance)
        except (OpenPgpError, IndexError) as error:
            raise SourceError(f"chart {where}: its provenance file can't be read: {error}") from None
        signer = self._signer(message, where)
        if digest not in _digests(message.text):
            raise SourceError(
                f"chart {where}: its archive has digest {digest}, which its signed provenance file does not name: "
                "it was changed after it was signed; do not install it"
            )
        return signer

    def _signer(self, message: ClearText, where: str) -> str:
        faults = []
        for signature in message.signatures:
            key = self._find(signature)
            if key is None:
                faults.append(f"key {signature.issuer or 'unknown'} is not in the keyring")
                continue
            fault = verify(key, message, signature)
            if not fault:
                return key.fingerprint
            faults.append(fault)
        raise SourceError(f"chart {where}: its signature is not accepted: {'; '.join(faults) or 'there is none'}")

    def _find(self, signature: Signature) -> Key | None:
        for key in self.keys:
            if signature.issuer and key.fingerprint.endswith(signature.issuer):
                return key
        return None


def parse_keyring(content: bytes) -> Keyring:
    """A public keyring as `gpg --export` writes it, armored or not."""
    try:
        return Keyring(tuple(parse_keys(content)))
    except OpenPgpError as error:
        raise SourceError(f"the keyring can't be used: {error}") from None


def _digests(text: str) -> set[str]:
    """The text is the chart's metadata, a separator, and the digests of its files."""
    _, _, files = text.rpartition(_SEPARATOR)
    try:
        found = yaml.load(files, "provenance")
    except yaml.YamlError:
        return set()
    named = found.get("files") if isinstance(found, dict) else None
    return {str(value) for value in named.values()} if isinstance(named, dict) else set()
