"""What others need to check our ServiceAccount tokens without asking us: OpenID discovery."""

from __future__ import annotations

import base64

from cryptography.hazmat.primitives.asymmetric import rsa

from homeport.apiserver.auth.source import Json
from homeport.apiserver.auth.token import jwt
from homeport.apiserver.auth.token.serviceaccount import ServiceAccounts

CONFIGURATION_PATH = "/.well-known/openid-configuration"
KEYS_PATH = "/openid/v1/jwks"


def configuration(accounts: ServiceAccounts, server: str) -> Json:
    """`server` is the URL under which the server is reached."""
    return {
        "issuer": accounts.issuer,
        "jwks_uri": f"{server}{KEYS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [jwt.algorithm(accounts.key.public_key())],
    }


def keys(accounts: ServiceAccounts) -> Json:
    """Served as application/jwk-set+json."""
    public = accounts.key.public_key()
    shared = {"use": "sig", "kid": jwt.key_id(public), "alg": jwt.algorithm(public)}
    if isinstance(public, rsa.RSAPublicKey):
        whole = public.public_numbers()
        size = (public.key_size + 7) // 8
        exponent = (whole.e.bit_length() + 7) // 8
        return {"keys": [{**shared, "kty": "RSA", "n": _encode(whole.n, size), "e": _encode(whole.e, exponent)}]}
    point = public.public_numbers()
    size = (public.key_size + 7) // 8
    curve = f"P-{public.key_size}"
    return {"keys": [{**shared, "kty": "EC", "crv": curve, "x": _encode(point.x, size), "y": _encode(point.y, size)}]}


def _encode(number: int, size: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes(size, "big")).rstrip(b"=").decode()
