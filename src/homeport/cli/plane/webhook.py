"""The options of `homeport up` about the webhooks that the API server of another cluster asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click

from homeport.app.settings import SettingsError, parse_listen

if TYPE_CHECKING:
    from homeport.app.kubernetes.webhook import WebhookSettings

F = TypeVar("F", bound=Callable[..., Any])

NAMES = ("webhook_listen", "webhook_url", "webhook_service")
_OPTIONS = (
    click.option(
        "--webhook-listen",
        metavar="HOST:PORT",
        default="",
        envvar="HOMEPORT_WEBHOOK_LISTEN",
        help="Serve the admission and conversion webhooks at this address (default: the port of --webhook-url on "
        "127.0.0.1; without both, webhooks are not served).",
    ),
    click.option(
        "--webhook-url",
        metavar="URL",
        default="",
        envvar="HOMEPORT_WEBHOOK_URL",
        help="Let the API server reach the webhooks of this process at this URL, for example https://10.0.0.5:9443 "
        "(default: through the Service of --webhook-service).",
    ),
    click.option(
        "--webhook-service",
        metavar="NAME",
        default="homeport-webhook",
        show_default=True,
        help="Name of the Service, and of the Secret with the CA of the webhooks, in the namespace of --namespace.",
    ),
)


def options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def parse_url(url: str) -> tuple[str, int]:
    """Host and port of --webhook-url. Raises SettingsError."""
    parts = urlsplit(url)
    try:
        port = parts.port or 443
    except ValueError:
        port = 0
    extra = parts.path.strip("/") or parts.query or parts.fragment or parts.username
    if parts.scheme != "https" or not parts.hostname or not port or extra:
        raise SettingsError(f"--webhook-url {url!r}: expected https://HOST:PORT, for example https://10.0.0.5:9443")
    return parts.hostname, port


def read_webhook(listen: str, url: str, service: str) -> WebhookSettings | None:
    """Raises SettingsError."""
    from homeport.app.kubernetes.webhook import WebhookSettings

    if not listen and not url:
        return None
    own = ("127.0.0.1", parse_url(url)[1]) if url else ("", 0)
    return WebhookSettings(parse_listen(listen, option="--webhook-listen") if listen else own, service, url)
