"""Where a machine was found last. A machine that is not found at another place is not proven to be gone."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.api.meta import Object
from homeport.runtime.outcome import Wait

LOCATION = "infra.homeport.dev/location"
_AGAIN_SECONDS = 60.0
_IDENTITY = ", identity "


@dataclass(frozen=True, slots=True)
class Location:
    """`identity` tells two places apart that have one address; '' where the account may not read it."""

    name: str = ""
    identity: str = ""

    def __str__(self) -> str:
        return f"{self.name}{_IDENTITY}{self.identity}" if self.identity else self.name

    def differs(self, other: Location) -> bool:
        """Identities are compared where both are known."""
        return self.name != other.name or bool(self.identity and other.identity and self.identity != other.identity)


def location_of(infra: Object) -> Location:
    """Where the machine was found before."""
    name, _, identity = infra.metadata.annotations.get(LOCATION, "").partition(_IDENTITY)
    return Location(name, identity)


def is_recorded(infra: Object, location: Location) -> bool:
    recorded = location_of(infra)
    known = bool(recorded.identity) or not location.identity
    return not location.name or (known and not recorded.differs(location))


def await_location(infra: Object, location: Location) -> Wait | None:
    """Of a machine that was not found at `location`. None: it is looked for where it was found before."""
    recorded = location_of(infra)
    if not recorded.name or not location.name or not recorded.differs(location):
        return None
    text = (
        f"the machine was found at {recorded} before, and the credentials now lead to {location}, where it is not: "
        f"correct the credentials; or, if the machine is gone, remove the annotation {LOCATION}"
    )
    return Wait("InfrastructureChanged", text, after=_AGAIN_SECONDS, warning=True)
