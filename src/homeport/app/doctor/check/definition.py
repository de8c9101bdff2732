"""Checks of what users wrote: references, images, networks, endpoints, versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network

import msgspec

from homeport.app.doctor.check.provider import diagnose, edit, is_untrusted
from homeport.app.doctor.diagnosis import Diagnosis
from homeport.app.doctor.fact import Facts, Problem
from homeport.app.object.absent import with_near

_Network = IPv4Network | IPv6Network

_SECRET = re.compile(r"Secret [a-z0-9.-]+/")
_IMAGE = frozenset({"ImageIsISO", "ImageDoesNotFit", "ImageVersionMismatch", "ImageNotReady", "ImageImportFailed"})
_ENDPOINT = frozenset(
    {
        "EndpointMissing",
        "EndpointInPool",
        "EndpointInUse",
        "EndpointInClusterNetwork",
        "EndpointNotResolved",
        "EndpointOutsideSubnet",
        "EndpointChanged",
        "EndpointNotUsable",
    }
)
_ADDRESS = frozenset(
    {"WaitingForPool", "SubnetNotManaged", "AddressOutsideSubnet", "AddressFamilyNotSupported", "AddressClaimTaken"}
)
_DOMAIN = frozenset({"FailureDomainMissing", "FailureDomainsMisconfigured", "MetroNotSupported"})
_OF_TEMPLATE = re.compile(r"([A-Z]\w*MachineTemplate) ([a-z0-9.-]+)\b[^:]*: spec\.template\.")
_TEMPLATE = re.compile(
    r"\b[A-Z]\w*(?:Template|Class|ConfigMap|Secret) \S+ does not exist[^;\n]*(?:; did you mean [^;\n]*)?"
)
_MISSING = frozenset({"WaitingForTemplates", "ObjectDoesNotExist", "TemplatesNotUsable", "WaitingForControlPlane"})
_REFERRER = re.compile(r"([A-Z]\w+) ([a-z0-9.-]+): [A-Z]\w+ \S+ does not exist")
_NO_CLUSTER = re.compile(r"^Cluster \S+ does not exist|^no Cluster refers to it")
_ALONE_SECONDS = 60.0  # so long objects may come before their Cluster


def image(facts: Facts) -> Iterator[Diagnosis]:
    """An ISO, an image of another system, or one with another version of Kubernetes."""
    for each in facts.problems():
        if each.reason in _IMAGE:
            yield _definition(facts, each)


def reference(facts: Facts) -> Iterator[Diagnosis]:
    """A cluster, subnet, image, project or other thing of the provider that does not exist, or has two namesakes."""
    for each in facts.problems():
        known = _SECRET.search(each.message) or is_untrusted(each)
        if each.reason in ("NotFound", "InvalidConfiguration", "InUse") and not known:
            yield _definition(facts, each)


def _definition(facts: Facts, problem: Problem) -> Diagnosis:
    """The field is wrong in the object, or in a template that the message names first."""
    named = _OF_TEMPLATE.match(problem.message)
    if named is None:
        return diagnose(problem, "definition", edit(facts, problem))
    kind, name = named.groups()
    advice = (
        "Templates are immutable: correct the field in the manifest, give the template another name and refer to it"
    )
    cure = facts.commands.kubectl("get", kind.lower(), name, "-n", problem.object.namespace, "-o", "yaml")
    end = "" if problem.message.endswith("?") else "."
    return diagnose(problem, "definition", cure, message=f"{problem.message.rstrip('.')}{end} {advice}")


def template(facts: Facts) -> Iterator[Diagnosis]:
    """Templates, classes and other objects that do not exist."""
    for each in facts.problems():
        # What does not exist can't report it: there the object above is the first to know.
        known = not each.borrowed or each.reason == "ObjectDoesNotExist"
        if each.reason in _MISSING and "does not exist" in each.message and known:
            yield diagnose(each, "definition", _edit_referrer(facts, each), message=_with_near(facts, each))
        elif found := _TEMPLATE.search(each.message):
            text = _with_near(facts, each, found.group())
            yield diagnose(each, "definition", edit(facts, each), cause="ObjectDoesNotExist", message=text)


def alone(facts: Facts) -> Iterator[Diagnosis]:
    """Parts of a cluster whose Cluster does not exist: it was refused, or has another name."""
    for each in facts.problems():
        if each.reason == "WaitingForCluster" and not each.borrowed and _NO_CLUSTER.search(each.message):
            text = _with_near(facts, each)
            cure = facts.commands.kubectl("get", "clusters", "-n", each.object.namespace)
            found = diagnose(each, "definition", cure, cause="NoCluster", message=text)
            yield msgspec.structs.replace(found, serious=each.seconds > _ALONE_SECONDS)


def _with_near(facts: Facts, problem: Problem, message: str = "") -> str:
    return with_near(message or problem.message, problem.object.namespace, facts.around or facts.objects)


def _edit_referrer(facts: Facts, problem: Problem) -> str:
    """The object with the wrong reference, which the message may name first."""
    named = _REFERRER.match(problem.message)
    if named is None:
        return edit(facts, problem)
    kind, name = named.groups()
    return facts.commands.kubectl("edit", kind.lower(), name, "-n", problem.object.namespace)


def failure_domain(facts: Facts) -> Iterator[Diagnosis]:
    for each in facts.problems():
        if each.reason in _DOMAIN:
            yield diagnose(each, "definition", edit(facts, each))


def endpoint(facts: Facts) -> Iterator[Diagnosis]:
    """The address of the control plane: missing, taken, in a pool, outside of the subnet, in a network of Pods."""
    for each in facts.problems():
        if each.reason in _ENDPOINT:
            yield diagnose(each, "network", edit(facts, each))


def address_pool(facts: Facts) -> Iterator[Diagnosis]:
    for each in facts.problems():
        if each.reason in _ADDRESS:
            yield diagnose(each, "network", edit(facts, each))


def node_network(facts: Facts) -> Iterator[Diagnosis]:
    """Networks of Pods or Services that overlap the subnet of the machines."""
    for each in facts.problems():
        if each.reason == "NetworksOverlap":
            yield diagnose(each, "network", edit(facts, each))


def cluster_network(facts: Facts) -> Iterator[Diagnosis]:
    """Networks of Pods and Services that overlap each other; admission refuses them, older objects may have them."""
    for obj in facts.of_kind("Cluster"):
        network = (obj.get("spec") or {}).get("clusterNetwork") or {}
        pods, services = (_blocks(network.get(part)) for part in ("pods", "services"))
        for one in pods:
            for two in services:
                if _overlap(one, two):
                    text = f"spec.clusterNetwork: pods {one} and services {two} overlap: they must differ"
                    cure = facts.commands.kubectl("edit", "cluster", obj.name, "-n", obj.namespace)
                    yield Diagnosis("NetworksOverlap", "network", "Cluster", f"{obj.namespace}/{obj.name}", text, cure)


def _overlap(one: _Network, two: _Network) -> bool:
    return one.version == two.version and one.overlaps(two)


def _blocks(part: object) -> list[_Network]:
    found: list[_Network] = []
    for text in (part or {}).get("cidrBlocks") or () if isinstance(part, dict) else ():
        try:
            found.append(ip_network(text, strict=False))
        except ValueError:
            continue
    return found


CHECKS = (image, reference, template, alone, failure_domain, endpoint, address_pool, node_network, cluster_network)
