"""Whether a user may read the image behind a class: who can't, can't make volumes of it."""

from __future__ import annotations

from homeport.apiserver.auth.decision import Attributes as Asked
from homeport.apiserver.auth.rbac.rbac import Rbac
from homeport.apiserver.request import SYSTEM, User
from homeport.sim.harvester.controller.image import IMAGE_ID
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import IMAGE, STORAGE_CLASS
from homeport.sim.harvester.object import notes


def image_of_class(core: Core, name: str) -> str | None:
    """`namespace/name` of the image that a class is for, '' if it is for none; None if there is no such class."""
    found = core.mirror.get(STORAGE_CLASS, name)
    if found is None:
        return None
    return notes(found).get(IMAGE_ID, "") if (found.get("parameters") or {}).get("backingImage") else ""


def may_read(rbac: Rbac, user: User, image: str) -> bool:
    if user is SYSTEM:
        return True
    namespace, _, name = image.partition("/")
    asked = Asked(user, "get", IMAGE.group, IMAGE.version, IMAGE.plural, "", namespace, name)
    return rbac.authorize(asked).allowed
