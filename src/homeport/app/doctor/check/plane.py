"""Checks of the management plane itself."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.app.doctor.diagnosis import Diagnosis
from homeport.app.doctor.fact import Facts
from homeport.app.report.webhook import distrust
from homeport.runtime.webhook.configuration import INJECT_ANNOTATION


def crashed_part(facts: Facts) -> Iterator[Diagnosis]:
    for part in facts.plane.parts if facts.plane is not None else ():
        if part.state == "waiting":
            text = f"crashed {part.crashes} times, the last time with: {part.error}"
            yield Diagnosis(
                "ComponentCrashed", "plane", "Component", part.name, text, facts.commands.run("support-bundle")
            )


def stepped_back(facts: Facts) -> Iterator[Diagnosis]:
    """Controllers that are off on purpose change nothing."""
    if facts.plane is not None and facts.plane.standby:
        yield Diagnosis("StandingBy", "plane", "Plane", "homeport", facts.plane.standby)


def unreadable_kind(facts: Facts) -> Iterator[Diagnosis]:
    for kind, why in (facts.plane.blind if facts.plane is not None else {}).items():
        yield Diagnosis("KindNotWatched", "plane", "Watch", kind, why, facts.commands.kubectl("get", kind, "-A"))


def untrusted_webhook(facts: Facts) -> Iterator[Diagnosis]:
    for each in facts.webhooks:
        if why := distrust(each, facts.now):
            namespace = each.metadata["annotations"][INJECT_ANNOTATION].partition("/")[0]
            look = facts.commands.kubectl("get", "pods", "-n", namespace)
            yield Diagnosis("WebhookNotTrusted", "plane", str(each["kind"]), each.name, why, look)


def waiting_controllers(facts: Facts) -> Iterator[Diagnosis]:
    for each in facts.waits:
        look = facts.commands.kubectl("get", "leases", "-A")
        yield Diagnosis("LeaseHeld", "plane", each.kind, each.object, each.message, look)


def paused(facts: Facts) -> Iterator[Diagnosis]:
    for obj in facts.of_kind("Cluster"):
        if (obj.get("spec") or {}).get("paused"):
            change = facts.commands.kubectl(
                "patch", "cluster", obj.name, "-n", obj.namespace, "--type=merge", "-p", '{"spec":{"paused":false}}'
            )
            text = "spec.paused is true: no controller changes this Cluster or its objects"
            yield Diagnosis("Paused", "plane", "Cluster", f"{obj.namespace}/{obj.name}", text, change, serious=False)


CHECKS = (crashed_part, stepped_back, unreadable_kind, untrusted_webhook, waiting_controllers, paused)
