"""What others need to check our ServiceAccount tokens without asking us: OpenID discovery."""

from __future__ import annotations

import base64

from homeport.apiserver.auth import jwt
from homeport.apiserver.auth.serviceaccount import ServiceAccounts
from homeport.apiserver.auth.source import Json

CONFIGURATION_PATH = "/.well-known/openid-configuration"
KEYS_PATH = "/openid/v1/jwks"


def configuration(accounts: ServiceAccounts, server: str) -> Json:
    """`server` is the URL under which the server is reached."""
    return {
        "issuer": accounts.issuer,
        "jwks_uri": f"{server}{KEYS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }


def keys(accounts: ServiceAccounts) -> Json:
    """Served as application/jwk-set+json."""
    public = accounts.key.public_key()
    numbers = public.public_numbers()
    return {
        "keys": [
            {
                "use": "sig",
                "kty": "EC",
                "kid": jwt.key_id(public),
                "crv": "P-256",
                "alg": "ES256",
                "x": _encode(numbers.x),
                "y": _encode(numbers.y),
            }
        ]
    }


def _encode(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes(32, "big")).rstrip(b"=").decode()
