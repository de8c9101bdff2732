"""Runs all checks, and puts causes before consequences. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

from homeport.app.doctor.check import certificate, definition, guest, node, other, plane, platform, provider
from homeport.app.doctor.check.other import WAITING
from homeport.app.doctor.diagnosis import LAYERS, Diagnosis
from homeport.app.doctor.fact import Facts

_SENTENCE = 20  # characters: shorter texts may be equal by chance
# Objects that report what others have reported to them.
_ABOVE = ("MachineSet", "MachineDeployment", "KubeadmControlPlane", "Cluster", "TenantCluster", "ClusterDeployment")

Check = Callable[[Facts], Iterable[Diagnosis]]

CHECKS: tuple[Check, ...] = (
    *plane.CHECKS,
    *provider.CHECKS,
    *definition.CHECKS,
    *platform.CHECKS,
    *guest.CHECKS,
    *node.CHECKS,
    *certificate.CHECKS,
    *other.CHECKS,
)


def examine(facts: Facts) -> list[Diagnosis]:
    """Serious ones first, then by layer; what repeats a cause that is already named is folded into it."""
    found = [diagnosis for check in CHECKS for diagnosis in check(facts)]
    found.sort(key=_rank)
    kept: list[Diagnosis] = []
    for each in found:
        if each.cause == WAITING and any(one.serious and each.place in (one.place, *one.consequences) for one in kept):
            continue
        causes = [number for number, earlier in enumerate(kept) if _repeats(each, earlier)]
        cause = next((number for number in causes if _names(each, kept[number])), causes[0] if causes else None)
        if cause is None:
            kept.append(each)
        elif each.place not in (kept[cause].place, *kept[cause].consequences):
            kept[cause] = msgspec.structs.replace(kept[cause], consequences=[*kept[cause].consequences, each.place])
    return kept


def _rank(found: Diagnosis) -> tuple[object, ...]:
    """Of equal layers, the object that the cause is about stands before those that only repeat it."""
    above = _ABOVE.index(found.kind) + 1 if found.kind in _ABOVE else 0
    return not found.serious, LAYERS.index(found.layer), above, found.kind, found.object


def _repeats(later: Diagnosis, earlier: Diagnosis) -> bool:
    """The same sentence, on the same or on another object; or an object that names the one with the cause."""
    if later.serious != earlier.serious and later.layer != "other":
        return False
    if earlier.layer == "network" and later.kind == earlier.kind and later.object != earlier.object:
        return False  # each has an address of its own to be corrected
    one, two = _plain(later.message), _plain(earlier.message)
    if min(len(one), len(two)) >= _SENTENCE and (one in two or two in one):
        return True
    if later.kind in _ABOVE and later.cause == earlier.cause and _names(later, earlier):
        return True
    same = (later.kind, later.object) == (earlier.kind, earlier.object)
    return later.layer == "other" and (same or _names(later, earlier))


def _names(later: Diagnosis, earlier: Diagnosis) -> bool:
    """The message of the later one names the object of the earlier one."""
    words = re.escape(f"{earlier.kind} {earlier.object.rpartition('/')[2]}")
    return re.search(rf"\b{words}(?![\w.-]*\w)", later.message) is not None


def _plain(text: str) -> str:
    return " ".join(text.replace("* ", "").split()).rstrip(".")
