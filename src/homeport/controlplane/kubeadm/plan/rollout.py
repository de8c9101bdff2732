"""Why a Machine has to be replaced: what can't be changed in place is not what it should be."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import msgspec

from homeport.api.bootstrap.v1beta2 import KubeadmConfig, KubeadmConfigSpec
from homeport.api.cluster.v1beta2 import Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import wire
from homeport.capi import version as versions
from homeport.capi.object.template import cloned_from
from homeport.controlplane.kubeadm.desired import Json, kubeadm_spec
from homeport.runtime.clock import parse_time

_DAY = 86_400.0
# Empty is not the same as unset: no taints at all, instead of the usual ones.
_MEANINGFUL_WHEN_EMPTY = frozenset({"taints"})


def outdated(
    kcp: KubeadmControlPlane,
    machine: Machine,
    config: KubeadmConfig | None,
    infrastructure: Mapping[str, Any] | None,
    now: float,
) -> tuple[str, ...]:
    """The reasons, one sentence each; () when it may stay. Fields that can't be compared are not a reason."""
    found: list[str] = []
    if machine.spec.version and not versions.same(machine.spec.version, kcp.spec.version):
        found.append(f"Version {machine.spec.version}, {kcp.spec.version} is desired")
    if config is not None and not same_config(kcp, config):
        found.append("KubeadmConfig does not match spec.kubeadmConfigSpec")
    ref = kcp.spec.machine_template.spec.infrastructure_ref
    if infrastructure is not None and ref is not None:
        source = cloned_from(infrastructure)
        if source is not None and source != (f"{ref.kind}.{ref.api_group}", ref.name):
            found.append(f"{infrastructure.get('kind')} was created from template {source[1]}, not from {ref.name}")
    created = parse_time(machine.metadata.creation_timestamp or "1970-01-01T00:00:00Z")
    after = kcp.spec.rollout.after
    if after and created < parse_time(after) <= now:
        found.append(f"it is older than spec.rollout.after ({after})")
    days, expiry = kcp.spec.rollout.before.certificates_expiry_days, machine.status.certificates_expiry_date
    if days and expiry and parse_time(expiry) - now < days * _DAY:
        found.append(f"its certificates expire at {expiry}, and are renewed {days} days before (spec.rollout.before)")
    return tuple(found)


def next_moment(kcp: KubeadmControlPlane, machines: list[Machine], now: float) -> float | None:
    """Seconds until time alone makes a Machine outdated."""
    moments = []
    if kcp.spec.rollout.after:
        moments.append(parse_time(kcp.spec.rollout.after))
    days = kcp.spec.rollout.before.certificates_expiry_days
    if days:
        expiries = [machine.status.certificates_expiry_date for machine in machines]
        moments += [parse_time(each) - days * _DAY for each in expiries if each]
    return min((each - now for each in moments if each > now), default=None)


def same_config(kcp: KubeadmControlPlane, config: KubeadmConfig) -> bool:
    """Whether a machine made now would be configured the same, whatever its part was when it came up."""
    encode = msgspec.json.encode
    return _same_config(kcp.spec.version, encode(kcp.spec.kubeadm_config_spec), encode(config.spec))


@functools.lru_cache(maxsize=4096)
def _same_config(version: str, wished: bytes, made: bytes) -> bool:
    """Asked at every look at a machine, of values that hardly ever change."""
    current: Json = wire(_decoded(made))
    joined = "controlPlane" in (current.get("joinConfiguration") or {})
    as_join = current if joined else _joined(current)
    wanted = kubeadm_spec(_decoded(wished), version, join=True)
    if not joined and "caCertPath" in (wanted.get("joinConfiguration") or {}):
        # There is no such thing for the first machine.
        as_join["joinConfiguration"]["caCertPath"] = wanted["joinConfiguration"]["caCertPath"]
    if comparable(as_join) == comparable(wanted):
        return True
    # The first machine was made from initConfiguration, which need not say the same as joinConfiguration.
    return not joined and comparable(current) == comparable(kubeadm_spec(_decoded(wished), version, join=False))


def _decoded(spec: bytes) -> KubeadmConfigSpec:
    return msgspec.json.decode(spec, type=KubeadmConfigSpec)


def _joined(spec: Json) -> Json:
    """What was said for `init`, said for `join`."""
    made = deepcopy(spec)
    init = made.pop("initConfiguration", None) or {}
    join: Json = {
        name: init[name] for name in ("timeouts", "patches", "skipPhases", "nodeRegistration") if name in init
    }
    join["controlPlane"] = {"localAPIEndpoint": init["localAPIEndpoint"]} if "localAPIEndpoint" in init else {}
    made["joinConfiguration"] = join
    return made


def comparable(spec: Json) -> Json:
    """The spec without what never asks for another machine, and with what is meant where nothing is said."""
    made = deepcopy(spec)
    cluster = made.get("clusterConfiguration") or {}
    for name in ("controlPlaneEndpoint", "dns"):  # the first never changes, the second is changed in place
        cluster.pop(name, None)
    for name in ("initConfiguration", "joinConfiguration"):
        part = made.get(name)
        if part is None:
            continue
        part.pop("discovery", None)
        part.pop("bootstrapTokens", None)
        (part.get("timeouts") or {}).pop("controlPlaneComponentHealthCheckSeconds", None)
        registration = part.setdefault("nodeRegistration", {})
        registration.setdefault("imagePullPolicy", "IfNotPresent")
    made.setdefault("format", "cloud-config")
    pruned: Json = _pruned(made, "")
    return pruned


def _pruned(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        found = {key: _pruned(each, key) for key, each in value.items()}
        return {
            key: each
            for key, each in found.items()
            if each is not None and (each not in ({}, [], "") or key in _MEANINGFUL_WHEN_EMPTY)
        }
    if isinstance(value, list):
        return [_pruned(each, name) for each in value]
    return value
