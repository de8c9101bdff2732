"""talosconfig: how talosctl reaches a cluster, with a client certificate."""

from __future__ import annotations

import base64
import binascii
import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509

from homeport.machinery import yaml
from homeport.machinery.talos.bundle import Bundle
from homeport.machinery.talos.certificate import KeyPair, encoded, make_client


class TalosconfigError(ValueError):
    """A talosconfig that can't be used."""


@dataclass(frozen=True, slots=True)
class Access:
    """One context: `authority` is the CA of the Talos API (PEM)."""

    endpoints: tuple[str, ...]
    authority: bytes
    client: KeyPair


def render_talosconfig(
    cluster: str, bundle: Bundle, endpoints: Sequence[str], nodes: Sequence[str], now: datetime.datetime
) -> str:
    """`endpoints` are control planes; `nodes` are asked unless talosctl is told otherwise."""
    client = make_client(bundle.os, now)
    context = {
        "endpoints": list(endpoints),
        "nodes": list(nodes),
        "ca": encoded(bundle.os.certificate),
        "crt": encoded(client.certificate),
        "key": encoded(client.key),
    }
    return yaml.dump({"context": cluster, "contexts": {cluster: context}})


def renew_talosconfig(text: str | bytes, bundle: Bundle, now: datetime.datetime) -> str:
    """The same with another client certificate in its current context. Raises TalosconfigError."""
    parse_talosconfig(text)
    document = yaml.load(text)
    client = make_client(bundle.os, now)
    context = document["contexts"][document["context"]]
    context |= {
        "ca": encoded(bundle.os.certificate),
        "crt": encoded(client.certificate),
        "key": encoded(client.key),
    }
    return yaml.dump(document)


def remaining(text: str | bytes, now: float) -> float:
    """The share of the client certificate's time that is left. Below 0: it has expired. Above 1: it is not valid yet.
    Raises TalosconfigError."""
    try:
        found = x509.load_pem_x509_certificate(parse_talosconfig(text).client.certificate)
    except TalosconfigError:
        raise
    except ValueError as broken:
        raise TalosconfigError("the client certificate is not a PEM certificate") from broken
    start, end = found.not_valid_before_utc.timestamp(), found.not_valid_after_utc.timestamp()
    return (end - now) / max(1.0, end - start)


def parse_talosconfig(text: str | bytes) -> Access:
    """The current context. Raises TalosconfigError."""
    try:
        document = yaml.load(text)
        context = document["contexts"][document["context"]]
        raw = {name: base64.b64decode(context[name], validate=True) for name in ("ca", "crt", "key")}
        endpoints = tuple(str(each) for each in context["endpoints"] or ())
    except (yaml.YamlError, binascii.Error, KeyError, TypeError) as broken:
        raise TalosconfigError(f"not a talosconfig with a current context and certificates: {broken!r}") from broken
    return Access(endpoints, raw["ca"], KeyPair(raw["crt"], raw["key"]))
