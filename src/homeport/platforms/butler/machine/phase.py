"""The phase of a MachineRequest, from what its provider answered. No I/O.

`Failed` is for what a user has to correct. It is never final: the provider is asked again at `status.nextAttempt`, and
as soon as the request, its ProviderConfig or a Secret changes.
"""

from __future__ import annotations

from homeport.api.butler.v1alpha1.machine import MachineRequestStatus
from homeport.capi.platform import MachineFact
from homeport.infra.error import ProviderError, Stale, can_not_ask
from homeport.runtime.outcome import Wait

PENDING, CREATING, RUNNING, UNKNOWN = "Pending", "Creating", "Running", "Unknown"
FAILED, DELETING, DELETED = "Failed", "Deleting", "Deleted"


def has_run(status: MachineRequestStatus) -> bool:
    return bool(status.ip_address)


def phase_of(status: MachineRequestStatus, wait: Wait | None, *, deleting: bool) -> str:
    """Of a machine that the provider was asked about."""
    if deleting:
        return DELETING
    if wait is None:
        return RUNNING
    return UNKNOWN if has_run(status) else CREATING


def phase_of_error(status: MachineRequestStatus, error: ProviderError, *, deleting: bool) -> str:
    if deleting:
        return DELETING
    if has_run(status):
        return UNKNOWN
    if can_not_ask(error) or isinstance(error, Stale):
        return CREATING if status.driver or status.provider_id else PENDING
    return FAILED


def put_machine(status: MachineRequestStatus, machine: MachineFact | None, wait: Wait | None) -> None:
    """Addresses that are not reported for a while are still the machine's. Some vendors assign them before a machine
    runs: only a machine that ran has them in its status."""
    if machine is None:
        return
    status.provider_id = machine.provider_id
    if machine.addresses and (wait is None or has_run(status)):
        status.ip_addresses = list(machine.addresses)
        status.ip_address = machine.addresses[0]
