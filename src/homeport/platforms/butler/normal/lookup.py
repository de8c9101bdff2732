"""Which ProviderConfig is meant: by its reference, or by default."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from homeport.api.butler.v1alpha1 import ProviderConfig
from homeport.api.butler.v1alpha1.part import ProviderRef
from homeport.infra.preflight.near import near
from homeport.platforms.butler.name import SYSTEM_NAMESPACE

DEFAULT_NAME = "default"


@dataclass(frozen=True, slots=True)
class Found:
    """The ProviderConfig, or why there is none; and the field that asked for it."""

    config: ProviderConfig | None
    source: str = ""
    message: str = ""


def find_provider(ref: ProviderRef, namespace: str, configs: Iterable[ProviderConfig], source: str = "") -> Found:
    """In the namespace of the reference; without one in `namespace`, then in butler-system, then the only one."""
    known = list(configs)
    named = {each.metadata.namespace: each for each in known if each.metadata.name == ref.name}
    if ref.namespace:
        if ref.namespace in named:
            return Found(named[ref.namespace], source)
        return Found(None, source, _not_found(f"{ref.namespace}/{ref.name}", ref.name, known, sorted(named)))
    for each in (namespace, SYSTEM_NAMESPACE):
        if each in named:
            return Found(named[each], source)
    if len(named) == 1:
        return Found(next(iter(named.values())), source)
    if named:
        where = ", ".join(sorted(named))
        return Found(
            None,
            source,
            f'ProviderConfig "{ref.name}" exists in several namespaces ({where}) and neither in {namespace} nor in '
            f"{SYSTEM_NAMESPACE}: set the namespace of the reference",
        )
    return Found(None, source, _not_found(ref.name, ref.name, known, []))


def choose_provider(namespace: str, configs: Iterable[ProviderConfig], *refs: tuple[str, ProviderRef | None]) -> Found:
    """The first reference that is set (object, team, ButlerConfig) decides; then the one called default, then the only
    one. A reference that leads nowhere is an error, never a reason to take another provider."""
    known = list(configs)
    for source, ref in refs:
        if ref is not None and ref.name:
            return find_provider(ref, namespace, known, source)
    fallback = find_provider(ProviderRef(name=DEFAULT_NAME), namespace, known, "built-in")
    if fallback.config is not None:
        return fallback
    platform = [each for each in known if (each.spec.scope is None or each.spec.scope.team_ref is None)]
    if len(platform) == 1:
        return Found(platform[0], "built-in")
    return Found(None, "", _none_chosen(platform))


def _none_chosen(configs: Sequence[ProviderConfig]) -> str:
    if not configs:
        return "no ProviderConfig exists: create one, for example in butler-system"
    names = ", ".join(sorted(f"{each.metadata.namespace}/{each.metadata.name}" for each in configs))
    return (
        f"there are several ProviderConfigs ({names}): set spec.providerConfigRef, or spec.defaultProviderConfigRef of "
        "ButlerConfig butler"
    )


def _not_found(what: str, name: str, configs: Sequence[ProviderConfig], elsewhere: Sequence[str]) -> str:
    if elsewhere:
        return f'ProviderConfig "{what}" not found; there is one with this name in {", ".join(elsewhere)}'
    return f'ProviderConfig "{what}" not found{near(name, (each.metadata.name for each in configs))}'
