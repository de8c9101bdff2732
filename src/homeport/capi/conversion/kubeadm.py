"""KubeadmConfig and KubeadmControlPlane, and their templates, between v1beta1 and v1beta2."""

from __future__ import annotations

from homeport.capi.conversion.codec import (
    ARGUMENTS,
    CONTRACT_REF,
    DURATION,
    Context,
    from_seconds,
    to_seconds,
)
from homeport.capi.conversion.part import FAILURE, counters, deletion, status
from homeport.capi.conversion.rule import ABSENT, Custom, Each, Json, Move, Rule, Within, find, put, take

_CONTROL_PLANE_TIMEOUT = "clusterConfiguration.apiServer.timeoutForControlPlane"
_INIT_TIMEOUT = "initConfiguration.timeouts.controlPlaneComponentHealthCheckSeconds"
_JOIN_TIMEOUT = "joinConfiguration.timeouts.controlPlaneComponentHealthCheckSeconds"
_WITH_ARGUMENTS = (
    "clusterConfiguration.apiServer.extraArgs",
    "clusterConfiguration.controllerManager.extraArgs",
    "clusterConfiguration.scheduler.extraArgs",
    "clusterConfiguration.etcd.local.extraArgs",
    "initConfiguration.nodeRegistration.kubeletExtraArgs",
    "joinConfiguration.nodeRegistration.kubeletExtraArgs",
)


def _spread_timeout(spec: Json, _: Context) -> None:
    """One timeout of the whole cluster becomes that of the first node and that of each that joins."""
    value = take(spec, _CONTROL_PLANE_TIMEOUT)
    if value is ABSENT or value is None:
        return
    seconds = to_seconds(value)
    put(spec, _INIT_TIMEOUT, seconds)
    put(spec, _JOIN_TIMEOUT, seconds)


def _gather_timeout(spec: Json, _: Context) -> None:
    seconds = take(spec, _INIT_TIMEOUT)
    take(spec, _JOIN_TIMEOUT)
    if isinstance(seconds, int | str):
        put(spec, _CONTROL_PLANE_TIMEOUT, from_seconds(seconds))


KUBEADM_CONFIG_SPEC: list[Rule] = [
    Custom(_spread_timeout, _gather_timeout, dict.fromkeys((_INIT_TIMEOUT, _JOIN_TIMEOUT), _CONTROL_PLANE_TIMEOUT)),
    Move("joinConfiguration.discovery.timeout", "joinConfiguration.timeouts.tlsBootstrapSeconds", DURATION),
    *(Move(path, path, ARGUMENTS) for path in _WITH_ARGUMENTS),
    Each("initConfiguration.bootstrapTokens", [Move("ttl", "ttlSeconds", DURATION)]),
]

KUBEADM_CONFIG: list[Rule] = [
    Within("spec", KUBEADM_CONFIG_SPEC),
    *status({name: name for name in ("Ready", "DataSecretAvailable", "CertificatesAvailable")}, retired=FAILURE),
    Move("status.ready", "status.initialization.dataSecretCreated"),
]

KUBEADM_CONFIG_TEMPLATE: list[Rule] = [Within("spec.template.spec", KUBEADM_CONFIG_SPEC)]


def _unready(obj: Json, _: Context) -> None:
    take(obj, "status.ready")


def _compute_ready(obj: Json, _: Context) -> None:
    """Older clients ask whether any replica is ready; by now that is the count of the old kind."""
    if obj.get("status"):
        replicas = find(obj, "status.readyReplicas")
        put(obj, "status.ready", isinstance(replicas, int) and replicas > 0)


def _name_strategy(spec: Json, _: Context) -> None:
    """There is but one strategy, so that older versions needn't name it."""
    strategy = find(spec, "rollout.strategy")
    if isinstance(strategy, dict) and not strategy.get("type"):
        strategy["type"] = "RollingUpdate"


def _write_config(spec: Json, _: Context) -> None:
    """Older versions insist on it, even if it says nothing; the newest one has no word for nothing."""
    spec.setdefault("kubeadmConfigSpec", {})


def _keep(_: Json, __: Context) -> None:
    return


_CONTROL_PLANE_SPEC: list[Rule] = [
    Custom(_keep, _write_config),
    Within("kubeadmConfigSpec", KUBEADM_CONFIG_SPEC),
    Within("machineTemplate", deletion("spec.deletion")),
    Move("machineTemplate.infrastructureRef", "machineTemplate.spec.infrastructureRef", CONTRACT_REF),
    Move("machineTemplate.readinessGates", "machineTemplate.spec.readinessGates"),
    Move("machineTemplate.taints", "machineTemplate.spec.taints"),
    Move("rolloutBefore", "rollout.before"),
    Move("rolloutAfter", "rollout.after"),
    Move("rolloutStrategy", "rollout.strategy"),
    Custom(_name_strategy, _keep),
    Move("remediationStrategy.maxRetry", "remediation.maxRetry"),
    Move("remediationStrategy.retryPeriod", "remediation.retryPeriodSeconds", DURATION),
    Move("remediationStrategy.minHealthyPeriod", "remediation.minHealthyPeriodSeconds", DURATION),
    Move("machineNamingStrategy", "machineNaming"),
]

_CONTROL_PLANE_CONDITIONS = {
    "Ready": "Available",
    "Available": "Initialized",  # of the old kind: that it can be talked to
    "CertificatesAvailable": "CertificatesAvailable",
    "EtcdClusterHealthy": "EtcdClusterHealthy",
    "ControlPlaneComponentsHealthy": "ControlPlaneComponentsHealthy",
    "MachinesReady": "MachinesReady",
    "MachinesSpecUpToDate": "MachinesUpToDate",
}

KUBEADM_CONTROL_PLANE: list[Rule] = [
    Within("spec", _CONTROL_PLANE_SPEC),
    Custom(_unready, _compute_ready),
    counters("readyReplicas", "updatedReplicas", "unavailableReplicas"),
    *status(
        _CONTROL_PLANE_CONDITIONS,
        retired=(*FAILURE, "readyReplicas", "updatedReplicas", "unavailableReplicas"),
        promoted=("readyReplicas", "availableReplicas", "upToDateReplicas"),
    ),
    Move("status.initialized", "status.initialization.controlPlaneInitialized"),
    Move("status.lastRemediation.timestamp", "status.lastRemediation.time"),
]

KUBEADM_CONTROL_PLANE_TEMPLATE: list[Rule] = [Within("spec.template.spec", _CONTROL_PLANE_SPEC)]
