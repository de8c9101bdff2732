"""JSON Web Tokens: signs and verifies them (ES256 for our own keys). The meaning of claims is the caller's."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from homeport.apiserver.auth.certificate import PrivateKey

Claims = dict[str, Any]

PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey

_RS256 = padding.PKCS1v15()


class TokenInvalid(Exception):
    """Not a token, or one that this server did not issue. The text never contains the token.

    `known`: it is signed by us, so that its holder may be told what is wrong with it.
    """

    def __init__(self, why: str, *, known: bool = False) -> None:
        super().__init__(why)
        self.known = known


def key_id(public: PublicKey) -> str:
    """The hash of the public key, by which holders of several keys find the right one."""
    der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return _encode(hashlib.sha256(der).digest())


def algorithm(public: PublicKey) -> str:
    """RS256, ES256 or ES384: what a key of this kind signs with."""
    if isinstance(public, rsa.RSAPublicKey):
        return "RS256"
    return "ES384" if isinstance(public.curve, ec.SECP384R1) else "ES256"


def sign(claims: Claims, key: PrivateKey) -> str:
    public = key.public_key()
    header = {"alg": algorithm(public), "kid": key_id(public)}
    text = f"{_encode(orjson.dumps(header))}.{_encode(orjson.dumps(claims, option=orjson.OPT_SORT_KEYS))}"
    if isinstance(key, rsa.RSAPrivateKey):
        return f"{text}.{_encode(key.sign(text.encode(), _RS256, hashes.SHA256()))}"
    half, digest = _curve(key.curve)
    r, s = decode_dss_signature(key.sign(text.encode(), ec.ECDSA(digest)))
    return f"{text}.{_encode(r.to_bytes(half, 'big') + s.to_bytes(half, 'big'))}"


def _curve(curve: ec.EllipticCurve) -> tuple[int, hashes.HashAlgorithm]:
    """Bytes of each of the two numbers of a signature, and what is signed."""
    return (48, hashes.SHA384()) if isinstance(curve, ec.SECP384R1) else (32, hashes.SHA256())


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


def verify(token: str, public: PublicKey) -> Claims:
    """The claims, once the signature is found to be that of the key. Times and audiences are the caller's to check."""
    text, _, signature = token.rpartition(".")
    try:
        header = orjson.loads(_decode(text.partition(".")[0]))
        raw = _decode(signature)
    except ValueError as broken:
        raise TokenInvalid("malformed token") from broken
    if not isinstance(header, dict) or header.get("alg") != algorithm(public):
        raise TokenInvalid("unexpected signature algorithm")
    try:
        _check(public, raw, text.encode())
    except InvalidSignature as wrong:
        raise TokenInvalid("invalid signature") from wrong
    claims = peek(token)
    if claims is None:
        raise TokenInvalid("malformed claims")
    return claims


def _check(public: PublicKey, signature: bytes, signed: bytes) -> None:
    if isinstance(public, rsa.RSAPublicKey):
        public.verify(signature, signed, _RS256, hashes.SHA256())
        return
    half, digest = _curve(public.curve)
    if len(signature) != 2 * half:
        raise TokenInvalid("unexpected signature algorithm")
    r, s = int.from_bytes(signature[:half], "big"), int.from_bytes(signature[half:], "big")
    public.verify(encode_dss_signature(r, s), signed, ec.ECDSA(digest))


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as broken:
        raise ValueError("not base64url") from broken
