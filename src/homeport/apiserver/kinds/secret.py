"""Secret: stringData, types with required keys, immutability."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from homeport.apiserver.kinds.check import config_key, immutable, invalid, required, too_long
from homeport.apiserver.kinds.config import SIZE_LIMIT, decoded_size, frozen
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

OPAQUE = "Opaque"
_ACCOUNT = "kubernetes.io/service-account.name"
_DOCKER = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}


class Secret(Plain):
    def default(self, obj: Json) -> None:
        plain = obj.pop("stringData", None)
        if plain:
            data = obj["data"] = obj.get("data") or {}
            for key, text in plain.items():
                data[key] = base64.b64encode(text.encode()).decode()
        if not obj.get("type"):
            obj["type"] = OPAQUE

    def prepare_update(self, obj: Json, old: Json) -> None:
        # Leaving the type out does not change it.
        if not obj.get("type"):
            obj["type"] = old.get("type", OPAQUE)

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        causes: list[Cause] = []
        if old is not None:
            causes += immutable("type", obj["type"], old.get("type"))
            causes += frozen(obj, old, "data")
        data = obj.get("data") or {}
        for key in data:
            if wrong := config_key(key):
                causes.append(invalid(f"data[{key}]", key, wrong))
        if sum(decoded_size(text) for text in data.values()) > SIZE_LIMIT:
            causes.append(too_long("data", SIZE_LIMIT))
        causes += _typed(obj["type"], data, obj["metadata"])
        return causes

    def fields(self, obj: Json) -> Mapping[str, str]:
        return {"type": obj.get("type", "")}


def _typed(kind: str, data: Json, meta: Json) -> Iterator[Cause]:
    if kind == "kubernetes.io/service-account-token":
        if not (meta.get("annotations") or {}).get(_ACCOUNT):
            yield required(f"metadata.annotations[{_ACCOUNT}]")
    elif kind in _DOCKER:
        yield from _json(_DOCKER[kind], data)
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            yield required("data[username]")
            yield required("data[password]")
    elif kind == "kubernetes.io/ssh-auth":
        if not data.get("ssh-privatekey"):
            yield required("data[ssh-privatekey]")
    elif kind == "kubernetes.io/tls":
        yield from (required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data)


def _json(key: str, data: Json) -> Iterator[Cause]:
    if key not in data:
        yield required(f"data[{key}]")
        return
    raw = base64.b64decode(data[key])
    try:
        found: Any = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        # Where it is wrong, not what is there: the content is secret. The first character is told, as everywhere.
        wrong = f"invalid character at byte {error.pos}"
        if not raw.strip():
            wrong = "unexpected end of JSON input"
        elif error.pos == 0:
            wrong = f"invalid character '{chr(raw[0])}' looking for beginning of value"
        yield invalid(f"data[{key}]", "<secret contents redacted>", wrong)
        return
    if not isinstance(found, dict):
        yield invalid(f"data[{key}]", "<secret contents redacted>", "must be a JSON object")
