"""The bootstrap provider on a manager, and its hooks."""

from __future__ import annotations

from homeport.bootstrap.kubeadm import admission, wiring
from homeport.capi.capi import Capi
from homeport.runtime.manager import Manager
from homeport.runtime.webhook.hook import Hooks


def install(manager: Manager, capi: Capi) -> None:
    wiring.install(manager, capi)


def register(hooks: Hooks) -> None:
    admission.register(hooks)
