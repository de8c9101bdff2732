"""Which claims Harvester refuses, and which it does not let go."""

from __future__ import annotations

from homeport.apiserver.auth.rbac.rbac import Rbac
from homeport.apiserver.verb.admission import Attributes
from homeport.sim.harvester.admission.access import image_of_class, may_read
from homeport.sim.harvester.admission.refusal import conflicting, failed, invalid
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import VM
from homeport.sim.harvester.object import key_of, leaving

_RESERVED = ("longhorn-static", "vmstate-persistence")


class ClaimRules:
    def __init__(self, core: Core, rbac: Rbac) -> None:
        self._core = core
        self._rbac = rbac

    def check(self, attributes: Attributes) -> None:
        claim = attributes.object
        name = claim["spec"].get("storageClassName") if claim is not None else None
        if not name:
            return
        if name in _RESERVED:
            raise invalid(f"can not create volume with the reserved storage class {name}", "spec.storageClassName")
        image = image_of_class(self._core, name)
        if image is None:
            raise failed(f'failed to get storage class {name}: storageclasses.storage.k8s.io "{name}" not found')
        user = attributes.ctx.user
        if image and not may_read(self._rbac, user, image):
            raise invalid(f'user "{user.name}" is not allowed to access image {image}', "spec.storageClassName")

    def check_delete(self, attributes: Attributes) -> None:
        claim = attributes.old
        if claim is None:
            return
        for vm in self._core.mirror.by(VM, "claim", str(key_of(claim))):
            if not leaving(vm):
                text = "can not delete the volume {} which is currently attached to VM: {}"
                raise conflicting(text.format(claim["metadata"]["name"], key_of(vm)))
