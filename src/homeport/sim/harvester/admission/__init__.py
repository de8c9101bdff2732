"""What the webhooks of Harvester and KubeVirt change and refuse, in this process: `machine` rewrites VMs, the others
refuse."""

from __future__ import annotations

from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.verb.admission import CREATE, DELETE, UPDATE
from homeport.sim.harvester.admission.claim import ClaimRules
from homeport.sim.harvester.admission.image import ImageRules
from homeport.sim.harvester.admission.keypair import check_key_pair
from homeport.sim.harvester.admission.kubevirt import check_machine
from homeport.sim.harvester.admission.machine import MachineChanges
from homeport.sim.harvester.admission.rule import MachineRules
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import CLAIM, IMAGE, KEY_PAIR, VM


def install(server: EmbeddedServer, core: Core) -> None:
    """`kubevirt` refuses on any cluster with KubeVirt; the rest is Harvester's."""
    on = server.admission.on
    on(VM.group, VM.plural, check_machine)
    if not core.world.harvester:
        return
    changes, rules = MachineChanges(core), MachineRules(core, server.rbac)
    on(VM.group, VM.plural, changes.mutate, mutating=True)
    on(VM.group, VM.plural, rules.check)
    images = ImageRules(core)
    on(IMAGE.group, IMAGE.plural, images.mutate, mutating=True)
    on(IMAGE.group, IMAGE.plural, images.check)
    on(IMAGE.group, IMAGE.plural, images.check_delete, (DELETE,))
    claims = ClaimRules(core, server.rbac)
    on(CLAIM.group, CLAIM.plural, claims.check, (CREATE,))
    on(CLAIM.group, CLAIM.plural, claims.check_delete, (DELETE,))
    on(KEY_PAIR.group, KEY_PAIR.plural, check_key_pair, (CREATE, UPDATE))
