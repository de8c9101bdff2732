"""What the infrastructure cluster's API server refuses, in the words that decide what happens next."""

from __future__ import annotations

from urllib.parse import urlsplit

from homeport.client.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Forbidden,
    Internal,
    Invalid,
    MethodNotAllowed,
    NotFound,
    Timeout,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from homeport.infra.error import (
    Denied,
    Exhausted,
    Missing,
    ProviderError,
    Rejected,
    Taken,
    Throttled,
    Unreachable,
)

_LOOPBACK = ("127.", "localhost", "[::1]", "::1")
_TLS = "TLS with "
_NO_CONNECTION = "no connection to "
_NO_ANSWER = "no answer in time"
_DENIED = "denied the request"
_SENT = "it may have been carried out"


def provider_error(error: ApiError, server: str, origin: str) -> ProviderError:
    """`server`: its URL. `origin`: where the credentials come from, for messages."""
    made = _mapped(error, server, origin)
    made.origin = origin
    made.own = error.message.startswith(_TLS)  # the CA in the kubeconfig of this user
    return made


def _mapped(error: ApiError, server: str, origin: str) -> ProviderError:
    text = error.message
    match error:
        case Unauthorized():
            return Denied(f"{server} does not accept the credentials of {origin}: download the kubeconfig again")
        case Forbidden() if "exceeded quota" in text:
            return Exhausted(f"the quota of the namespace is used up: {text}")
        case Forbidden():
            return Denied(f"the account of {origin} lacks a permission: {text}")
        case NotFound():
            return Missing(text)
        case AlreadyExists():
            return Taken(text)
        case TooManyRequests():
            return Throttled(f"{server} asks for fewer requests", after=float(error.retry_after or 1))
        case Invalid() | BadRequest() | MethodNotAllowed():
            return Rejected(text)
        case Unavailable():
            return Unreachable(_explained(text, server, origin))
        case Internal() if _DENIED in text:  # as Harvester's webhooks put it if something that they look up is missing
            return Rejected(text)
        case Timeout() | Internal():
            return Unreachable(f"{server}: {text}")
        case _ if error.http_code >= 500:
            return Unreachable(f"{server}: {text}")
        case _:
            return Rejected(text)


def _explained(text: str, server: str, origin: str) -> str:
    """With the cure for what kubeconfigs of Harvester most often get wrong."""
    if text.startswith(_TLS):
        return (
            f"{text}; set certificate-authority-data in the kubeconfig of {origin} to the CA of this server, use the "
            "name or address that its certificate has, or set insecure-skip-tls-verify: true for a first test"
        )
    if _NO_ANSWER in text:
        return f"{server} did not answer in time ({text.partition(' on ')[0]})" + (
            "; " + _SENT if _SENT in text else ""
        )
    if not text.startswith(_NO_CONNECTION):
        return f"{server}: {text}"
    parts = urlsplit(server)
    if (parts.hostname or "").startswith(_LOOPBACK):
        return f"{text}; the server URL in the kubeconfig of {origin} must be the external address of the cluster"
    port = parts.port or 443
    return f"{text}; check the server URL in the kubeconfig of {origin}, and that no firewall blocks port {port}"
