"""As much of OpenPGP as provenance files need: keys of a keyring, and signatures of clear text (RFC 4880, RFC 9580).

Only signatures are checked, with the primitives of `cryptography`. A key of the keyring is trusted because it is there;
one that is revoked, or had expired when it signed, is not.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

_PUBLIC: Final = frozenset({6, 14})  # primary key, subkey
_SECRET: Final = frozenset({5, 7})  # the same with their private part, which is not read
_SIGNATURE: Final = 2
_TEXT_SIGNATURES: Final = frozenset({0x00, 0x01})
_REVOCATIONS: Final = frozenset({0x20, 0x28})
_RSA: Final = frozenset({1, 3})
_ECDSA: Final = 19
_EDDSA: Final = 22
_ED25519: Final = 27
_HASHES: Final[dict[int, type[hashes.HashAlgorithm]]] = {
    8: hashes.SHA256,
    9: hashes.SHA384,
    10: hashes.SHA512,
    11: hashes.SHA224,
}
_CURVES: Final[dict[bytes, type[ec.EllipticCurve]]] = {
    bytes.fromhex("2a8648ce3d030107"): ec.SECP256R1,
    bytes.fromhex("2b81040022"): ec.SECP384R1,
    bytes.fromhex("2b81040023"): ec.SECP521R1,
}
_CLEAR: Final = re.compile(
    r"-----BEGIN PGP SIGNED MESSAGE-----\r?\n(?:[A-Za-z]+: [^\r\n]*\r?\n)*\r?\n(?P<text>.*?)\r?\n"
    r"(?P<armor>-----BEGIN PGP SIGNATURE-----.*?-----END PGP SIGNATURE-----)",
    re.DOTALL,
)
_ARMOR: Final = re.compile(
    r"-----BEGIN PGP [A-Z ]+-----\r?\n(?:[A-Za-z]+: [^\r\n]*\r?\n)*\r?\n?"
    r"(?P<body>[A-Za-z0-9+/=\s]*?)(?:\n=[A-Za-z0-9+/]{4}\s*)?"
    r"-----END PGP [A-Z ]+-----"
)

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey


class OpenPgpError(ValueError):
    """Not OpenPGP, or not of a form that is known here."""


@dataclass(slots=True)
class Key:
    fingerprint: str
    created: int
    algorithm: int
    public: PublicKey
    expires_after: int = 0  # seconds; 0: never
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    kind: int
    algorithm: int
    hash: int
    created: int
    issuer: str  # the end of a fingerprint
    key_expires_after: int
    trailer: bytes  # what is hashed after the text
    values: tuple[int, ...]
    raw: bytes


@dataclass(frozen=True, slots=True)
class ClearText:
    text: str
    signed: bytes  # as it is hashed
    signatures: tuple[Signature, ...]


def parse_clear_text(content: bytes) -> ClearText:
    found = _CLEAR.search(content.decode("utf-8", "replace"))
    if found is None:
        raise OpenPgpError("it is not a signed message (-----BEGIN PGP SIGNED MESSAGE-----)")
    lines = [line.removeprefix("- ").rstrip(" \t\r") for line in found["text"].split("\n")]
    signatures = [_signature(body) for tag, body in _packets(_dearmored(found["armor"])) if tag == _SIGNATURE]
    return ClearText("\n".join(lines), "\r\n".join(lines).encode(), tuple(signatures))


def parse_keys(content: bytes) -> list[Key]:
    """The keys of a keyring, armored or not. Those of unknown algorithms are passed over."""
    if content.lstrip().startswith(b"-----BEGIN"):
        content = b"".join(_dearmored(each[0]) for each in _ARMOR.finditer(content.decode("ascii", "replace")))
    keys: list[Key] = []
    current: Key | None = None
    for tag, body in _packets(content):
        if tag in _PUBLIC or tag in _SECRET:
            current = _key(body)
            if current is not None:
                keys.append(current)
        elif tag == _SIGNATURE and current is not None:
            _note(current, body)
    if not keys:
        raise OpenPgpError("the keyring holds no usable key: RSA, ECDSA (NIST curves) and Ed25519 are supported")
    return keys


def verify(key: Key, message: ClearText, signature: Signature) -> str:
    """Why the signature is not valid; empty if it is."""
    if signature.kind not in _TEXT_SIGNATURES or signature.hash not in _HASHES:
        return "its kind or hash is not supported; SHA-256 or better is required"
    if key.revoked:
        return f"key {key.fingerprint} is revoked"
    if key.expires_after and signature.created > key.created + key.expires_after:
        return f"key {key.fingerprint} had expired when it signed"
    algorithm = _HASHES[signature.hash]()
    digest = hashlib.new(algorithm.name, message.signed + signature.trailer).digest()
    try:
        _check(key, signature, digest, algorithm)
    except (InvalidSignature, ValueError, UnsupportedAlgorithm, IndexError):
        return "the text was changed after it was signed, or the signature is damaged"
    return ""


def _check(key: Key, signature: Signature, digest: bytes, algorithm: hashes.HashAlgorithm) -> None:
    hashed = utils.Prehashed(algorithm)
    public = key.public
    if isinstance(public, rsa.RSAPublicKey):
        raw = signature.values[0].to_bytes((public.key_size + 7) // 8)
        public.verify(raw, digest, padding.PKCS1v15(), hashed)
    elif isinstance(public, ec.EllipticCurvePublicKey):
        encoded = utils.encode_dss_signature(signature.values[0], signature.values[1])
        public.verify(encoded, digest, ec.ECDSA(hashed))
    elif signature.algorithm == _ED25519:
        public.verify(signature.raw, digest)
    else:
        public.verify(signature.values[0].to_bytes(32) + signature.values[1].to_bytes(32), digest)


def _dearmored(text: str) -> bytes:
    found = _ARMOR.search(text)
    if found is None:
        raise OpenPgpError("its armor (-----BEGIN PGP ...) is damaged")
    try:
        return base64.b64decode("".join(found["body"].split()), validate=True)
    except binascii.Error:
        raise OpenPgpError("its armor is not valid base64") from None


def _packets(content: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(content):
        try:
            tag, start, length = _header(content, at)
        except IndexError:
            raise OpenPgpError("a packet is cut off") from None
        body = content[start : start + length]
        if len(body) != length:
            raise OpenPgpError("a packet is cut off")
        yield tag, body
        at = start + length


def _header(content: bytes, at: int) -> tuple[int, int, int]:
    """Tag, start of the body, length of the body."""
    first = content[at]
    if not first & 0x80:
        raise OpenPgpError("it does not hold OpenPGP packets")
    if not first & 0x40:  # the old form
        size = {0: 1, 1: 2, 2: 4}.get(first & 3)
        if size is None:
            return (first >> 2) & 0xF, at + 1, len(content) - at - 1
        return (first >> 2) & 0xF, at + 1 + size, int.from_bytes(content[at + 1 : at + 1 + size])
    length, start = _length(content, at + 1)
    return first & 0x3F, start, length


def _length(content: bytes, at: int) -> tuple[int, int]:
    if 224 <= content[at] < 255:
        raise OpenPgpError("packets of partial length are not supported")
    return _subpacket_length(content, at)


def _number(content: bytes, at: int) -> tuple[int, int]:
    """A multi-precision integer, and where the next one begins."""
    length = (int.from_bytes(content[at : at + 2]) + 7) // 8
    if at + 2 + length > len(content):
        raise OpenPgpError("a number is cut off")
    return int.from_bytes(content[at + 2 : at + 2 + length]), at + 2 + length


def _key(body: bytes) -> Key | None:
    if len(body) < 6 or body[0] != 4:
        return None
    algorithm = body[5]
    try:
        public, end = _public(algorithm, body)
    except (OpenPgpError, ValueError, IndexError, UnsupportedAlgorithm):
        return None
    own = body[:end]  # a secret key goes on with its private part
    fingerprint = hashlib.sha1(b"\x99" + len(own).to_bytes(2) + own, usedforsecurity=False).hexdigest()
    return Key(fingerprint, int.from_bytes(body[1:5]), algorithm, public)


def _public(algorithm: int, body: bytes) -> tuple[PublicKey, int]:
    if algorithm in _RSA:
        modulus, at = _number(body, 6)
        exponent, at = _number(body, at)
        return rsa.RSAPublicNumbers(exponent, modulus).public_key(), at
    if algorithm == _ED25519:
        return ed25519.Ed25519PublicKey.from_public_bytes(body[6:38]), 38
    if algorithm not in (_ECDSA, _EDDSA):
        raise OpenPgpError("unknown algorithm")
    size = body[6]
    curve = body[7 : 7 + size]
    point, at = _number(body, 7 + size)
    encoded = point.to_bytes((point.bit_length() + 7) // 8)
    if algorithm == _EDDSA:
        return ed25519.Ed25519PublicKey.from_public_bytes(encoded[1:]), at
    return ec.EllipticCurvePublicKey.from_encoded_point(_CURVES[curve](), encoded), at


def _note(key: Key, body: bytes) -> None:
    """What the signatures after a key say about it."""
    try:
        signature = _signature(body)
    except (OpenPgpError, IndexError):
        return
    if signature.kind in _REVOCATIONS:
        key.revoked = True
    elif signature.key_expires_after:
        key.expires_after = signature.key_expires_after


def _signature(body: bytes) -> Signature:
    if len(body) < 10 or body[0] != 4:
        raise OpenPgpError("signatures of version 4 are supported alone")
    kind, algorithm, hash_number = body[1], body[2], body[3]
    hashed_end = 6 + int.from_bytes(body[4:6])
    hashed = body[:hashed_end]
    unhashed_end = hashed_end + 2 + int.from_bytes(body[hashed_end : hashed_end + 2])
    known = dict(_subpackets(body[6:hashed_end]))
    more = dict(_subpackets(body[hashed_end + 2 : unhashed_end]))
    fingerprint = known.get(33) or more.get(33)
    issuer = fingerprint[1:] if fingerprint else known.get(16) or more.get(16) or b""
    at = unhashed_end + 2  # the left bits of the hash
    values = []
    raw = body[at:]
    while algorithm != _ED25519 and at < len(body):
        value, at = _number(body, at)
        values.append(value)
    trailer = hashed + b"\x04\xff" + len(hashed).to_bytes(4)
    return Signature(
        kind,
        algorithm,
        hash_number,
        int.from_bytes(known.get(2, b"")),
        issuer.hex(),
        int.from_bytes(known.get(9, b"")),
        trailer,
        tuple(values),
        raw,
    )


def _subpackets(content: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(content):
        length, start = _subpacket_length(content, at)
        yield content[start] & 0x7F, content[start + 1 : start + length]
        at = start + length


def _subpacket_length(content: bytes, at: int) -> tuple[int, int]:
    first = content[at]
    if first < 192:
        return first, at + 1
    if first < 255:
        return ((first - 192) << 8) + content[at + 1] + 192, at + 2
    return int.from_bytes(content[at + 1 : at + 5]), at + 5
