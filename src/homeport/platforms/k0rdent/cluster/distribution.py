"""What the built-in templates of one distribution of Kubernetes have of their own. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a ClusterConfig has a chart, which has a distribution
    from homeport.platforms.k0rdent.cluster.config import ClusterConfig

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Blank:
    """A template that a class refers to. Patches fill it in for every cluster."""

    api_version: str
    kind: str
    spec: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """How machines become a cluster. Its name is also that of its section of the values.

    Where a function takes a bool: whether the control plane is hosted.
    """

    name: str
    version: str  # of clusters that name none
    infix: str  # of the names of templates: k0s, which came first, has none
    settings_folder: str  # for files of the API server
    network_addons: bool  # whether the Pod network is an add-on; otherwise it is part of the distribution
    network_port: bool  # whether the API servers listen at the port that the Cluster's network names
    normal: Callable[[str], str]  # a version as it is written in objects; raises ValueError
    providers: Callable[[bool], Mapping[str, str]]  # as clusterctl's inventory has them > component of the plane
    networks: Callable[[bool], tuple[str, ...]]  # values of network.provider, the default first; (): no choice
    section: Callable[[bool], Json]  # schema of its section of the values
    variable: str
    variable_schema: Json
    plane: Callable[[bool], Blank]
    worker: Blank
    plane_patches: Callable[[bool, str], list[Json]]  # (hosted, path of the endpoint in the variables)
    worker_patch: Callable[[], Json]
    value: Callable[[ClusterConfig], Json]  # of the variable
