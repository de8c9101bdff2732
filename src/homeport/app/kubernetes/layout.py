"""Which Deployments run the controllers on a Kubernetes cluster: one for all, or those of upstream's releases."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from homeport.capi.component import Component, LogDeployment
from homeport.capi.rule import Rule
from homeport.client.protocol import Key

Layout = Literal["combined", "split"]
LAYOUTS: tuple[Layout, ...] = ("combined", "split")

SYSTEM_NAMESPACE = "homeport-system"
NAME = "homeport-controller-manager"


class LayoutError(ValueError):
    """A Deployment that no layout has; the text names those that exist."""


@dataclass(frozen=True, slots=True)
class Placement:
    """One Deployment, and which controllers its replicas run.

    Placements with the same Lease have the same controllers: one of them works, the others stand by.
    """

    namespace: str
    name: str
    lease: tuple[str, str]  # namespace and name
    split: bool = False  # only the controllers of this place, and not all

    @property
    def home(self) -> bool:
        """Whether it does what belongs to no single component: webhooks, the inventory."""
        return (self.namespace, self.name) == (SYSTEM_NAMESPACE, NAME)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def has_component(self, components: Sequence[Component], name: str) -> bool:
        return any(each.name == name and self.has(each) for each in components)

    def has(self, component: Component) -> bool:
        return not self.split or any(self._is(place) for place in places_of(component))

    def rules(self, component: Component) -> tuple[Rule, ...] | None:
        """What the controllers here write, if it is not everything that the component writes."""
        own = [place for place in places_of(component) if self.split and self._is(place)]
        return own[0].rules if own else None

    def runs(self, component: Component, controller: str) -> bool:
        return not self.split or any(self._is(place) for place in _homes(component, controller))

    def _is(self, place: LogDeployment) -> bool:
        return (place.namespace, place.deployment) == (self.namespace, self.name)


COMBINED = Placement(SYSTEM_NAMESPACE, NAME, (SYSTEM_NAMESPACE, "homeport"))
SPLIT_HOLDER = "split"  # of COMBINED's Lease, while Deployments of the split layout work
_HOME = LogDeployment(SYSTEM_NAMESPACE, NAME)


def placements(components: Sequence[Component], layout: Layout) -> list[Placement]:
    if layout == "combined":
        return [COMBINED]
    found = {(_HOME.namespace, _HOME.deployment): _placement(_HOME, (_HOME,))}
    for component in components:
        for place in places_of(component):
            key = (place.namespace, place.deployment)
            found.setdefault(key, _placement(place, places_of(component)))
    return list(found.values())


def split_leases(components: Sequence[Component]) -> tuple[Key, ...]:
    """One for each Deployment of the split layout, or for several that stand by for each other."""
    return tuple(dict.fromkeys(Key(*each.lease) for each in placements(components, "split")))


def find_placement(components: Sequence[Component], name: str) -> Placement:
    """`NAMESPACE/DEPLOYMENT` of the split layout. Raises LayoutError."""
    known = {str(each): each for each in placements(components, "split")}
    if name not in known:
        raise LayoutError(f"--deployment {name!r}: expected one of {', '.join(known)}")
    return known[name]


def places_of(component: Component) -> tuple[LogDeployment, ...]:
    return tuple(place for place in component.places if not place.alias) or (_HOME,)


def _homes(component: Component, controller: str) -> list[LogDeployment]:
    """Places that name the controller come first; then the first one that takes all."""
    places = places_of(component)
    named = [p for p in places if any(fnmatch.fnmatchcase(controller, each) for each in p.controllers)]
    return named or [next((place for place in places if not place.controllers), places[0])]


def _placement(place: LogDeployment, places: Sequence[LogDeployment]) -> Placement:
    first = next(
        each for each in places if each == place or (place.controllers and each.controllers == place.controllers)
    )
    return Placement(place.namespace, place.deployment, (first.namespace, first.deployment), split=True)
