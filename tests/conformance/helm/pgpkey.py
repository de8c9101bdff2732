"""A key pair for signing charts, in the packets of a secret keyring that Helm reads."""

from __future__ import annotations

import base64
import hashlib
import time

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

USER = "Harbour Master <master@example.com>"
_RSA = 1
_SHA256 = 8


def _number(value: int) -> bytes:
    return value.bit_length().to_bytes(2) + value.to_bytes((value.bit_length() + 7) // 8)


def _packet(tag: int, body: bytes) -> bytes:
    return bytes([0xC0 | tag, 0xFF]) + len(body).to_bytes(4) + body


def _subpacket(kind: int, body: bytes) -> bytes:
    return bytes([len(body) + 1, kind]) + body


class SigningKey:
    """RSA, with one user and its certification by itself. `lifetime`: seconds after which it expires."""

    def __init__(self, lifetime: int = 0, created: int | None = None) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._created = int(time.time()) - 3600 if created is None else created
        self._lifetime = lifetime
        public = self._key.public_key().public_numbers()
        self._public = bytes([4]) + self._created.to_bytes(4) + bytes([_RSA]) + _number(public.n) + _number(public.e)
        self._framed = b"\x99" + len(self._public).to_bytes(2) + self._public
        self.fingerprint = hashlib.sha1(self._framed).hexdigest()

    @property
    def public_ring(self) -> bytes:
        return _packet(6, self._public) + self._identity()

    @property
    def secret_ring(self) -> bytes:
        private = self._key.private_numbers()
        numbers = b"".join(map(_number, (private.d, private.q, private.p, pow(private.q, -1, private.p))))
        body = self._public + b"\0" + numbers + (sum(numbers) & 0xFFFF).to_bytes(2)
        return _packet(5, body) + self._identity()

    def sign(self, text: str, *, when: int | None = None, weak: bool = False) -> bytes:
        """A clear text with its signature, as a provenance file is. `weak`: with SHA-1."""
        number, name = (2, hashes.SHA1()) if weak else (_SHA256, hashes.SHA256())
        moment = int(time.time()) if when is None else when
        hashed = _subpacket(2, moment.to_bytes(4)) + _subpacket(33, b"\x04" + bytes.fromhex(self.fingerprint))
        head = bytes([4, 0x01, _RSA, number]) + len(hashed).to_bytes(2) + hashed
        canonical = "\r\n".join(line.rstrip() for line in text.split("\n")).encode()
        data = canonical + head + b"\x04\xff" + len(head).to_bytes(4)
        signed = self._key.sign(data, padding.PKCS1v15(), name)
        body = head + b"\0\0" + hashlib.new(name.name, data).digest()[:2] + _number(int.from_bytes(signed))
        armor = base64.encodebytes(_packet(2, body)).decode()
        escaped = "\n".join(f"- {line}" if line.startswith("-") else line for line in text.split("\n"))
        return (
            f"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n{escaped}\n"
            f"-----BEGIN PGP SIGNATURE-----\n\n{armor}-----END PGP SIGNATURE-----\n"
        ).encode()

    @property
    def revocation(self) -> bytes:
        """What is added to a public ring when the key is revoked."""
        hashed = _subpacket(2, int(time.time()).to_bytes(4))
        head = bytes([4, 0x20, _RSA, _SHA256]) + len(hashed).to_bytes(2) + hashed
        return _packet(2, head + b"\0\0" + b"\0\0" + _number(1))

    def _identity(self) -> bytes:
        user = USER.encode()
        hashed = _subpacket(2, self._created.to_bytes(4)) + _subpacket(27, b"\x03")
        hashed += _subpacket(11, b"\x09") + _subpacket(21, b"\x08")
        if self._lifetime:
            hashed += _subpacket(9, self._lifetime.to_bytes(4))
        head = bytes([4, 0x13, _RSA, _SHA256]) + len(hashed).to_bytes(2) + hashed
        data = self._framed + b"\xb4" + len(user).to_bytes(4) + user + head + b"\x04\xff" + len(head).to_bytes(4)
        signed = self._key.sign(data, padding.PKCS1v15(), hashes.SHA256())
        issuer = _subpacket(16, bytes.fromhex(self.fingerprint)[-8:])
        body = head + len(issuer).to_bytes(2) + issuer + hashlib.sha256(data).digest()[:2]
        return _packet(13, user) + _packet(2, body + _number(int.from_bytes(signed)))
