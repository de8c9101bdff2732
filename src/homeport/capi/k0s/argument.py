"""Flags of `k0s install` that users give and that we add to: labels, taints and arguments of the kubelet. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

MACHINE_NAME_LABEL = "k0smotron.io/machine-name"
_LABEL_VALUE_SIZE = 63
_MERGED = ("labels", "taints", "kubelet-extra-args")
_FLAG = re.compile(r"--(?P<name>[a-z0-9-]+)(?:[= ](?P<value>.*))?", re.DOTALL)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# What a kubelet may say of its own Node in the domains of Kubernetes; everything else there is for administrators.
_OWN_LABELS = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    }
)
_OWN_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_SYSTEM_DOMAINS = ("kubernetes.io", "k8s.io")


class BadArgument(ValueError):
    """A flag that k0s or Kubernetes would refuse. Names it."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """`spec.args`, with those taken out that are given once for all."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[str, ...] = ()  # key=value:effect
    kubelet: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()

    @property
    def names(self) -> set[str]:
        """Of all other flags, without hyphens."""
        return {found["name"] for each in self.rest if (found := _FLAG.match(each)) is not None}


def parse_arguments(args: Sequence[str]) -> Arguments:
    """Raises BadArgument."""
    labels: dict[str, str] = {}
    taints: list[str] = []
    kubelet: list[str] = []
    rest: list[str] = []
    words = iter(args)
    for word in words:
        found = _FLAG.fullmatch(word.strip())
        if found is None or found["name"] not in _MERGED:
            rest.append(word)
            continue
        value = found["value"] if found["value"] is not None else next(words, "")
        value = _unquoted(value)
        if found["name"] == "labels":
            labels |= dict(parse_label(each) for each in _parts(value))
        elif found["name"] == "taints":
            taints += [format_taint(parse_taint(each)) for each in _parts(value)]
        else:
            kubelet.append(value)
    return Arguments(labels, tuple(dict.fromkeys(taints)), tuple(each for each in kubelet if each), tuple(rest))


def parse_label(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise BadArgument(f"label {text!r} has no value: write it as KEY=VALUE")
    return key, value


def parse_taint(text: str) -> Json:
    """A taint as a Node has it."""
    head, separator, effect = text.rpartition(":")
    key, _, value = head.partition("=")
    if not separator or not key or effect not in _EFFECTS:
        raise BadArgument(f"taint {text!r}: write it as KEY=VALUE:EFFECT with one of the effects {', '.join(_EFFECTS)}")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def format_taint(taint: Mapping[str, str]) -> str:
    value = taint.get("value", "")
    return f"{taint['key']}={value}:{taint['effect']}" if value else f"{taint['key']}:{taint['effect']}"


def kubelet_may_set(label: str) -> bool:
    """Kubelet refuses to start with other labels of Kubernetes' own domains, as with node-role.kubernetes.io/..."""
    domain, separator, _ = label.rpartition("/")
    if not separator or label in _OWN_LABELS or _in(domain, _OWN_DOMAINS):
        return True
    return not _in(domain, _SYSTEM_DOMAINS)


def join_flags(given: Arguments, *, machine: str, hostname: str, taints: Iterable[str] = ()) -> list[str]:
    """The flags of a node. `machine`: its Machine, '' if there are many; `hostname`: its name, '' for its own."""
    labels = {MACHINE_NAME_LABEL: machine} if machine and len(machine) <= _LABEL_VALUE_SIZE else {}
    labels |= {key: value for key, value in given.labels.items() if kubelet_may_set(key)}
    flags = []
    if labels:
        flags.append(f"--labels={','.join(f'{key}={value}' for key, value in labels.items())}")
    tainted = list(dict.fromkeys([*given.taints, *taints]))
    if tainted:
        flags.append(f"--taints={','.join(tainted)}")
    kubelet = [*([f"--hostname-override={hostname}"] if hostname else []), *given.kubelet]
    return [*flags, *given.rest, *([f'--kubelet-extra-args="{" ".join(kubelet)}"'] if kubelet else [])]


def runs_worker(given: Arguments) -> bool:
    """Whether a controller is a node, too."""
    return any(each in given.rest for each in ("--enable-worker", "--enable-worker=true", "--single", "--single=true"))


def _parts(value: str) -> list[str]:
    return [each.strip() for each in value.split(",") if each.strip()]


def _unquoted(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _in(domain: str, domains: Iterable[str]) -> bool:
    return any(domain == each or domain.endswith(f".{each}") for each in domains)
