"""Checks of what machines print on their consoles while they start."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from homeport.api.meta import Unstructured
from homeport.app.doctor.diagnosis import Diagnosis
from homeport.app.doctor.fact import Facts
from homeport.capi.object.summary import conditions_of
from homeport.client.protocol import Key
from homeport.machinery import condition
from homeport.runtime.clock import parse_time

# What a console says > the cause, and what to do. The first that matches counts.
_SIGNS = (
    (
        re.compile(r"could not resolve host|no such host|name resolution|server misbehaving", re.I),
        "GuestHasNoDNS",
        "the machine can't resolve names: check the DNS servers of its subnet",
    ),
    (
        re.compile(r"failed to pull image|pulling image.*(failed|error)|ErrImagePull|ImagePull", re.I),
        "GuestCannotPullImages",
        "the machine can't pull images: check its access to the registries, or use a mirror",
    ),
    (
        re.compile(r"this version of kubeadm only supports|kubernetes version.*(unsupported|not supported)", re.I),
        "ImageVersionMismatch",
        "the image contains another version of Kubernetes: use an image with the version of the Machine",
    ),
    (
        re.compile(r"(kubeadm|kubelet|containerd|k0s)[^\n]*(command not found|not found|no such file)", re.I),
        "ImageLacksPrograms",
        "the image lacks a program that the bootstrap data needs: use an image for this bootstrap provider",
    ),
    (
        re.compile(r"(curl|wget|download)[^\n]*(failed|timed out|error|unreachable)|network is unreachable", re.I),
        "GuestHasNoInternet",
        "the machine can't download: check its gateway and proxy, or use an image that contains everything",
    ),
    (
        re.compile(r"(token|bootstrap)[^\n]*(expired|invalid|not valid|unauthorized)|could not find a JWS", re.I),
        "JoinTokenInvalid",
        "the join token was not accepted: the controllers renew it; delete the Machine if this lasts",
    ),
    (
        re.compile(r":(6443|8132|9443)\b[^\n]*(timeout|timed out|refused|no route|unreachable)", re.I),
        "EndpointNotReachable",
        "the machine can't reach the control plane: check that its network has a route to the endpoint, and that no "
        "firewall blocks the port",
    ),
    (
        re.compile(r"no bootable device|kernel panic|grub rescue|not a bootable disk", re.I),
        "ImageDoesNotBoot",
        "the image does not boot: check the image and the boot type (legacy, uefi)",
    ),
)
_ERROR = re.compile(r"\berror\b|\[ERROR|failed|fatal|panic", re.I)
_STAMP = re.compile(r"^\[ *\d+\.\d+\] *")
_LINES = 3  # of the console are quoted
_SILENT_SECONDS = 5.0
_ADDRESS_SECONDS = 180.0  # a slow host, a large image and DHCP together
_ADDRESSES = frozenset({"VMAddressesAssigned", "Ready"})  # repeat what the condition of the VM says


def console(facts: Facts) -> Iterator[Diagnosis]:
    """Machines that did not become Nodes, and say why."""
    for machine in facts.of_kind("Machine"):
        key = Key(machine.namespace, machine.name)
        lines = [_STAMP.sub("", line) for line in facts.consoles.get(key, ())]
        if _joined(machine) or not lines:
            continue
        yield from _signs(facts, machine, lines)


def _signs(facts: Facts, machine: Unstructured, lines: Sequence[str]) -> Iterator[Diagnosis]:
    cure = facts.commands.run("console", machine.name, "-n", machine.namespace)
    key = f"{machine.namespace}/{machine.name}"
    for pattern, cause, advice in _SIGNS:
        said = [line for line in lines if pattern.search(line)]
        if said:
            text = f"{advice}. Its console says: {_quoted(said)}"
            yield Diagnosis(cause, "guest", "Machine", key, text, cure)
            return
    said = [line for line in lines if _ERROR.search(line)]
    if said:
        yield Diagnosis("GuestFailed", "guest", "Machine", key, f"its console says: {_quoted(said)}", cure)


def silent(facts: Facts) -> Iterator[Diagnosis]:
    """A VM that is on, has not joined, and has printed nothing since."""
    for machine in facts.of_kind("Machine"):
        key = Key(machine.namespace, machine.name)
        if _joined(machine) or key not in facts.consoles or facts.consoles[key] or not _provisioned(facts, machine):
            continue
        text = "its VM runs, but prints nothing on its console: the image may not boot, or has no serial console"
        cure = facts.commands.run("console", machine.name, "-n", machine.namespace)
        yield Diagnosis("GuestSilent", "guest", "Machine", str(key), text, cure)


def no_address(facts: Facts) -> Iterator[Diagnosis]:
    """A VM that runs and has no address: soon it will have one, or it never gets one."""
    for each in facts.problems():
        if each.reason == "WaitingForAddress" and not each.borrowed and each.condition not in _ADDRESSES:
            late = each.seconds > _ADDRESS_SECONDS
            cure = facts.commands.run("console", each.object.name, "-n", each.object.namespace)
            text = each.message if late else f"{each.message}. It may only be too early"
            yield Diagnosis("GuestHasNoAddress", "guest", each.kind, each.key, text, cure, serious=late)


def _provisioned(facts: Facts, machine: Unstructured) -> bool:
    """For so long that it should have printed something."""
    found = condition.find(conditions_of(machine), "InfrastructureReady") or {}
    since = str(found.get("lastTransitionTime") or "")
    good = found.get("status") == "True" and since != ""
    return good and facts.now - parse_time(since) > _SILENT_SECONDS


def _joined(machine: Unstructured) -> bool:
    return bool((machine.get("status") or {}).get("nodeRef"))


def _quoted(lines: Sequence[str]) -> str:
    return " / ".join(dict.fromkeys(line.strip() for line in lines[-_LINES:]))


CHECKS = (console, silent, no_address)
