"""What a Kubernetes API does wrong on purpose, and what the machines, images and hosts behind it do.

faults:
- name: every third create is refused
  match: {verb: create, resource: virtualmachines, every: 3}
  effect: {kind: status, status: 503}
- name: the answer is lost, the VM exists
  match: {verb: create, resource: virtualmachines.kubevirt.io, entity: "*-cp-*", nth: 1}
  effect: {kind: drop, when: after}
- name: watches end every 30 seconds
  match: {verb: watch}
  effect: {kind: watch-cut, seconds: 30}
"""

from __future__ import annotations

from homeport.sim.engine.fault import (
    AddressChange,
    AddressLate,
    AddressLoss,
    AgentSilence,
    Crash,
    Delay,
    Drop,
    ImportFailure,
    NoBoot,
    Outage,
    Stale,
    Status,
    Throttle,
    Vocabulary,
    WatchCut,
)

REQUEST_EFFECTS = (Status, Throttle, Delay, Drop, Stale, WatchCut)
MACHINE_EFFECTS = (Crash, NoBoot, AgentSilence, AddressLate, AddressChange, AddressLoss)

VOCABULARY = Vocabulary(
    "harvester", (*REQUEST_EFFECTS, ImportFailure, *MACHINE_EFFECTS, Outage), ("operation", "cluster")
)
