"""What a Cluster is made by: its class, and the templates that the class names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from homeport.api.cluster.v1beta2 import ClusterClass
from homeport.api.cluster.v1beta2.template import ClusterClassTemplateReference, MachineDeploymentClass
from homeport.api.meta import Resource, Unstructured
from homeport.capi.contract import Contract
from homeport.capi.name import TEMPLATE_SUFFIX, TOPOLOGY_CLONE_NAME
from homeport.capi.resolution import plural
from homeport.machinery.gvk import parse_api_version


class TopologyError(Exception):
    """The topology can't be reconciled: says what is wrong and what to do. Only a change ends it, not a retry."""


class Missing(TopologyError):
    """Something that the class names does not exist (yet): manifests may come in any order."""


@dataclass(frozen=True, slots=True)
class Template:
    """A template of the class, in the version that the class names."""

    resource: Resource
    object: Unstructured

    @property
    def instance_kind(self) -> Resource:
        """The kind of what is made from it."""
        kind = self.resource.kind.removesuffix(TEMPLATE_SUFFIX)
        return Resource(self.resource.group, self.resource.version, kind, plural(kind))

    @property
    def kind(self) -> tuple[str, str]:
        return self.resource.group, self.resource.kind

    @property
    def clone_name(self) -> str:
        """What copies of it are called after the name of their Cluster; '': nothing."""
        return str((self.object.metadata.get("annotations") or {}).get(TOPOLOGY_CLONE_NAME) or "")


@dataclass(frozen=True, slots=True)
class DeploymentBlueprint:
    given: MachineDeploymentClass
    bootstrap: Template
    infrastructure: Template


@dataclass(frozen=True, slots=True)
class Blueprint:
    cluster_class: ClusterClass
    infrastructure: Template
    control_plane: Template
    contract: Contract  # of the control plane
    machines: Template | None = None  # of the control plane
    deployments: Mapping[str, DeploymentBlueprint] = field(default_factory=dict)  # by class, those that are used


def resource_of(ref: ClusterClassTemplateReference) -> Resource:
    group, version = parse_api_version(ref.api_version)
    return Resource(group, version, ref.kind, plural(ref.kind))
