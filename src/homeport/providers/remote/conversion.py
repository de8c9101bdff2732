"""The remote machine kinds between v1beta1 and v1beta2, without loss."""

from __future__ import annotations

from typing import Any

from homeport.api.remote import v1beta1, v1beta2
from homeport.capi.conversion.registration import Conversions, register_conversions
from homeport.capi.conversion.rule import Move, Within, ready_moved
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]


_CLEANUP = Move("customCleanUpCommands", "cleanUpCommands")
_PROVISIONED = ready_moved("provisioned")

KINDS: Conversions = (
    (
        (v1beta1.RemoteMachine, v1beta2.RemoteMachine),
        [
            Within("spec", [_CLEANUP]),
            Move("status.failureReason", "status.deprecated.v1beta1.failureReason"),
            Move("status.failureMessage", "status.deprecated.v1beta1.failureMessage"),
            _PROVISIONED,
        ],
    ),
    ((v1beta1.RemoteMachineTemplate, v1beta2.RemoteMachineTemplate), []),
    ((v1beta1.PooledRemoteMachine, v1beta2.PooledRemoteMachine), [Within("spec.machine", [_CLEANUP])]),
    ((v1beta1.RemoteCluster, v1beta2.RemoteCluster), [_PROVISIONED]),
    ((v1beta1.RemoteClusterTemplate, v1beta2.RemoteClusterTemplate), []),
)


def register(hooks: Hooks) -> None:
    register_conversions(hooks, KINDS)
