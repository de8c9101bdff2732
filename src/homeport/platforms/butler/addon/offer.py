"""What the catalogue offers: add-ons that Homeport knows, and those that AddonDefinitions describe. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from homeport.addons.catalogue import Entry, catalogue
from homeport.api.butler.v1alpha1 import GROUP, VERSION, AddonDefinition
from homeport.infra.preflight.near import near
from homeport.platforms.butler.name import MANAGED_BY, MANAGED_BY_LABEL
from homeport.platforms.butler.normal.addon import DefinitionModel, normal_addon_definition

Json = dict[str, Any]

SOURCE_LABEL = f"{GROUP}/source"
CATEGORY_LABEL = f"{GROUP}/category"
BUILT_IN = "builtin"
# As users of Butler call them > as the catalogue does.
ALIASES = {"fluxcd": "flux", "argocd": "argo-cd"}
_CATEGORIES = {"metrics": "observability"}
_PLATFORM = ("cni", "loadbalancer", "storage", "certmanager", "ingress")


@dataclass(frozen=True, slots=True)
class Offer:
    """An add-on of the catalogue: either one that Homeport knows, or one of an AddonDefinition."""

    name: str
    entry: str = ""  # of the catalogue of Homeport
    definition: DefinitionModel | None = None

    @property
    def depends_on(self) -> tuple[str, ...]:
        return self.definition.depends_on if self.definition is not None else ()


@dataclass(frozen=True, slots=True)
class NoOffer:
    message: str


def is_built_in(definition: AddonDefinition) -> bool:
    labels = definition.metadata.labels
    return labels.get(SOURCE_LABEL) == BUILT_IN and labels.get(MANAGED_BY_LABEL) == MANAGED_BY


def find_offer(name: str, definitions: Iterable[AddonDefinition]) -> Offer | NoOffer:
    """An AddonDefinition that somebody wrote goes before an add-on of Homeport with the same name."""
    own = {each.metadata.name: each for each in definitions if not is_built_in(each)}
    found = own.get(name)
    if found is not None:
        normal = normal_addon_definition(found)
        if normal.model is None:
            return NoOffer(f"AddonDefinition {name} can't be used: {normal.text}")
        return Offer(name, definition=normal.model)
    entry = ALIASES.get(name, name)
    if entry in catalogue():
        return Offer(name, entry=entry)
    known = sorted({*own, *catalogue()})
    return NoOffer(
        f'AddonDefinition "{name}" not found{near(name, known)}: create it, or choose one of {", ".join(known)}'
    )


def built_in_definition(entry: Entry) -> Json:
    """As users see an add-on that Homeport knows."""
    category = _CATEGORIES.get(entry.category, entry.category)
    first = [each.name for each in catalogue().values() if each.category in entry.after and each.category == "cni"]
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "AddonDefinition",
        "metadata": {
            "name": entry.name,
            "labels": {MANAGED_BY_LABEL: MANAGED_BY, SOURCE_LABEL: BUILT_IN, CATEGORY_LABEL: category},
        },
        "spec": {
            "displayName": entry.title[:64],
            "description": entry.description[:512],
            "category": category,
            "chart": {
                "repository": entry.chart.repository,
                "name": entry.chart.name,
                "defaultVersion": entry.newest,
                "availableVersions": list(entry.versions),
            },
            "defaults": {"namespace": entry.namespace, "releaseName": entry.release_name},
            "platform": category in _PLATFORM,
            "links": {"homepage": entry.homepage},
            **({"dependsOn": first} if len(first) == 1 else {}),
        },
    }
