"""Sealing of values at rest.

A sealed value is bound to its place (bucket and name, passed as associated data), so that a row copied
over another one does not open.
"""

from __future__ import annotations

import os
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from homeport.store.error import SealBroken

_NONCE_BYTES = 12
_KEY_BYTES = 32


class Cipher(Protocol):
    """Authenticated encryption. `open` raises SealBroken for anything `seal` did not make for that aad."""

    def seal(self, value: bytes, aad: bytes) -> bytes: ...

    def open(self, sealed: bytes, aad: bytes) -> bytes: ...


class AesGcm:
    """AES-256-GCM with a random nonce in front of each sealed value.

    Random 96-bit nonces are safe for about 2**32 values under one key, far more than a management
    cluster writes Secrets in its life.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) != _KEY_BYTES:
            raise ValueError(f"the encryption key has {len(key)} bytes, it must have {_KEY_BYTES}")
        self._aead = AESGCM(key)

    @staticmethod
    def generate_key() -> bytes:
        return AESGCM.generate_key(bit_length=_KEY_BYTES * 8)

    def seal(self, value: bytes, aad: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._aead.encrypt(nonce, value, aad)

    def open(self, sealed: bytes, aad: bytes) -> bytes:
        try:
            return self._aead.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], aad)
        except (InvalidTag, ValueError) as error:
            raise SealBroken(f"{aad.decode(errors='replace')} does not open with this key") from error
