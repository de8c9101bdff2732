"""Checks of the provider, from what objects report: credentials, address, certificate, capacity, tasks, orphans."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from homeport.app.doctor.diagnosis import Diagnosis
from homeport.app.doctor.fact import Facts, Problem

_SECRET = re.compile(r"Secret ([a-z0-9.-]+)/([a-z0-9.-]*[a-z0-9])")
_DENIED = frozenset({"AccessDenied", "CredentialsInvalid"})
_UNTRUSTED = re.compile(
    r"certificate (is not|of .* is not|that is not) (trusted|valid)|x509|is not trusted|^TLS with \S+ failed", re.I
)
_CAPACITY = frozenset({"InsufficientCapacity", "PoolExhausted", "PoolEmpty", "QuotaExceeded", "NoFreeAddress"})
_FAILED = frozenset(
    {
        "Rejected",
        "InstanceGone",
        "TaskOverdue",
        "InfrastructureChanged",
        "PoweredOff",
        "ProviderError",
        "VMNotReady",
        "VMTerminal",
    }
)
# What a provider records > the layer.
_RECORDED = {
    "TaskFailed": "machine",
    "TaskOverdue": "machine",
    "VendorWarning": "machine",
    "QuotaUsedUp": "capacity",
    "QuotaNearlyUsedUp": "capacity",
}


def credential(facts: Facts) -> Iterator[Diagnosis]:
    """User names, passwords, keys and kubeconfigs that are wrong, expired or incomplete."""
    for each in facts.problems():
        secret = _SECRET.search(each.message)
        unusable = secret is not None and each.reason in ("InvalidConfiguration", "NotFound", "CredentialsMissing")
        unusable = unusable and not is_untrusted(each)
        if each.reason in _DENIED or unusable:
            # A Secret that does not exist can't be edited: its name is wrong, or it has to be created.
            there = None if "does not exist" in each.message else secret
            yield diagnose(each, "credential", _edit_secret(facts, there) or edit(facts, each))


def recorded(facts: Facts) -> Iterator[Diagnosis]:
    """What the provider itself records: failed and overdue tasks, quotas, warnings about machines."""
    for each in facts.probes:
        if each.reason in _RECORDED:
            problem = Problem(each.object, "Probe", each.reason, each.message)
            found = diagnose(problem, _RECORDED[each.reason], show(facts, problem))
            yield msgspec.structs.replace(found, serious=each.reason != "QuotaNearlyUsedUp")


def probed(facts: Facts) -> Iterator[Diagnosis]:
    """Providers that did not let us in just now, also where the objects have not noticed it yet."""
    for each in facts.probes:
        if each.reason in _RECORDED:
            continue
        problem = Problem(each.object, "Probe", each.reason, each.message)
        secret = _SECRET.search(each.message)
        unusable = secret is not None and each.reason != "Unreachable"
        layer = "credential" if each.reason in _DENIED or unusable else "connection"
        cause = "CertificateNotTrusted" if is_untrusted(problem) else each.reason
        there = None if "does not exist" in each.message else secret
        yield diagnose(problem, layer, _edit_secret(facts, there) or edit(facts, problem), cause=cause)


def certificate(facts: Facts) -> Iterator[Diagnosis]:
    """A certificate of the provider that is not trusted."""
    for each in facts.problems():
        if is_untrusted(each):
            yield diagnose(each, "connection", edit(facts, each), cause="CertificateNotTrusted")


def connection(facts: Facts) -> Iterator[Diagnosis]:
    """A provider that does not answer: address, port, firewall, outage."""
    for each in facts.problems():
        if each.reason in ("Unreachable", "Throttled") and not is_untrusted(each):
            yield diagnose(each, "connection", edit(facts, each))


def capacity(facts: Facts) -> Iterator[Diagnosis]:
    """CPU, memory, disks, addresses or a quota that are used up."""
    for each in facts.problems():
        if each.reason in _CAPACITY or "exhausted" in each.message:
            yield diagnose(each, "capacity", edit(facts, each))


def task(facts: Facts) -> Iterator[Diagnosis]:
    """Tasks of the provider that failed, and machines that it lost."""
    for each in facts.problems():
        if each.reason in _FAILED or each.condition == "Failure":
            yield diagnose(each, "machine", show(facts, each))


def orphan(facts: Facts) -> Iterator[Diagnosis]:
    for each in facts.problems():
        if each.reason == "OrphanedMachines":
            cure = facts.commands.run("orphans", "list", each.object.name, "-n", each.object.namespace)
            yield diagnose(each, "machine", cure)


def is_untrusted(problem: Problem) -> bool:
    reasons = ("Unreachable", "InvalidConfiguration")
    said = problem.reason in reasons and _UNTRUSTED.search(problem.message) is not None
    return said or problem.reason == "CertificateNotTrusted"


def diagnose(problem: Problem, layer: str, cure: str, *, cause: str = "", message: str = "") -> Diagnosis:
    """InfrastructureReachable reports that a cluster can't be managed now: it may still work."""
    return Diagnosis(cause or problem.reason, layer, problem.kind, problem.key, message or problem.message, cure)


def edit(facts: Facts, problem: Problem) -> str:
    return facts.commands.kubectl("edit", problem.kind.lower(), problem.object.name, "-n", problem.object.namespace)


def show(facts: Facts, problem: Problem) -> str:
    return facts.commands.kubectl("describe", problem.kind.lower(), problem.object.name, "-n", problem.object.namespace)


def _edit_secret(facts: Facts, secret: re.Match[str] | None) -> str:
    return "" if secret is None else facts.commands.kubectl("edit", "secret", secret.group(2), "-n", secret.group(1))


CHECKS = (credential, probed, recorded, certificate, connection, capacity, task, orphan)
