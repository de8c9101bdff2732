"""The kinds that Homeport does not act on, and what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.k0rdent.v1beta1 import (
    ClusterDataSource,
    DataSource,
    Region,
)
from homeport.capi.component import Setup
from homeport.capi.stored import install_stored
from homeport.platforms.k0rdent.name import FIELD_MANAGER

ADVICE: Mapping[type[Any], str] = {
    Region: "run another plane in the region, and move clusters there with homeport move",
    DataSource: "hosted control planes keep their data in an etcd of their own",
    ClusterDataSource: "hosted control planes keep their data in an etcd of their own",
}


def install(setup: Setup) -> None:
    install_stored(setup.manager, ADVICE, platform="k0rdent", field_manager=FIELD_MANAGER)
