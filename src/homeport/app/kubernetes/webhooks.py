"""The webhooks of an installation: which definitions convert, and which objects tell the API server to ask us."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from homeport.capi.component import Component
from homeport.capi.definition.stored import stored_alone

Json = dict[str, Any]


def definition(crd: Mapping[str, Any]) -> Json:
    return stored_alone(crd)


def objects(components: Iterable[Component]) -> list[Json]:
    del components
    return []
