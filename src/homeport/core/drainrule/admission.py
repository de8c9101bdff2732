"""What a MachineDrainRule may say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.api.cluster.v1beta2 import MachineDrainRule
from homeport.client.errors import Cause
from homeport.machinery.selector import SelectorError, from_label_selector
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]


def register(hooks: Hooks) -> None:
    hooks.add(MachineDrainRule, validate=validate)


def validate(rule: Json, old: Json | None) -> list[Cause]:
    spec = rule.get("spec") or {}
    return [*_order(spec.get("drain") or {}), *_selectors(spec)]


def _order(drain: Json) -> Iterator[Cause]:
    if drain.get("order") is not None and drain.get("behavior") != "Drain":
        yield Cause.invalid(
            "spec.drain.order",
            f"{drain['order']}: order is allowed with behavior Drain only: remove it, or use Drain "
            f"instead of {drain.get('behavior')}",
        )


def _selectors(spec: Json) -> Iterator[Cause]:
    for part, names in (("machines", ("selector", "clusterSelector")), ("pods", ("selector", "namespaceSelector"))):
        for i, entry in enumerate(spec.get(part) or ()):
            for name in names:
                try:
                    from_label_selector(entry.get(name) or {})
                except SelectorError as error:
                    yield Cause.invalid(f"spec.{part}[{i}].{name}", error)
