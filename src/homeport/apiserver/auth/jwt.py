"""JSON Web Tokens signed with ES256: making and checking them. What the claims mean is not known here."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

Claims = dict[str, Any]

_HALF = 32  # bytes of each of the two numbers of a P-256 signature
_ES256 = ec.ECDSA(hashes.SHA256())


class TokenInvalid(Exception):
    """Not a token, or not one of ours. The text never contains the token.

    `known`: it is signed by us, so that its holder may be told what is wrong with it.
    """

    def __init__(self, why: str, *, known: bool = False) -> None:
        super().__init__(why)
        self.known = known


def key_id(public: ec.EllipticCurvePublicKey) -> str:
    """The hash of the public key, by which holders of several keys find the right one."""
    der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return _encode(hashlib.sha256(der).digest())


def sign(claims: Claims, key: ec.EllipticCurvePrivateKey) -> str:
    header = {"alg": "ES256", "kid": key_id(key.public_key())}
    text = f"{_encode(orjson.dumps(header))}.{_encode(orjson.dumps(claims, option=orjson.OPT_SORT_KEYS))}"
    r, s = decode_dss_signature(key.sign(text.encode(), _ES256))
    return f"{text}.{_encode(r.to_bytes(_HALF, 'big') + s.to_bytes(_HALF, 'big'))}"


def peek(token: str) -> Claims | None:
    """The claims of something that looks like a token, unchecked: only to see for whom it is. None: no token."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = orjson.loads(_decode(parts[1]))
    except (ValueError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None


def verify(token: str, public: ec.EllipticCurvePublicKey) -> Claims:
    """The claims, once the signature is found to be that of the key. Times and audiences are the caller's to check."""
    text, _, signature = token.rpartition(".")
    try:
        header = orjson.loads(_decode(text.partition(".")[0]))
        raw = _decode(signature)
    except ValueError as broken:
        raise TokenInvalid("malformed token") from broken
    if not isinstance(header, dict) or header.get("alg") != "ES256" or len(raw) != 2 * _HALF:
        raise TokenInvalid("unexpected signature algorithm")
    r, s = int.from_bytes(raw[:_HALF], "big"), int.from_bytes(raw[_HALF:], "big")
    try:
        public.verify(encode_dss_signature(r, s), text.encode(), _ES256)
    except InvalidSignature as wrong:
        raise TokenInvalid("invalid signature") from wrong
    claims = peek(token)
    if claims is None:
        raise TokenInvalid("malformed claims")
    return claims


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as broken:
        raise ValueError("not base64url") from broken
