"""KubeconfigGenerator."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions, LabelSelector
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Default, Format, Needed, Rule
from homeport.api.steward.v1alpha1.group import GROUP

_ONE_OF = Rule("has(self.stringValue) != has(self.fromDefinition)", "set either stringValue or fromDefinition")


class CompoundValue(Model):
    """A text, or the path of a field of the TenantControlPlane that has it."""

    __schema__ = (_ONE_OF,)

    from_definition: str = ""
    string_value: str = ""


class KubeconfigGeneratorSpec(Model):
    control_plane_endpoint_from: Annotated[str, Default("admin.svc")] = "admin.svc"
    groups: list[CompoundValue] = []
    namespace_selector: LabelSelector = {}
    tenant_control_plane_selector: LabelSelector = {}
    user: Annotated[CompoundValue, Needed()] = msgspec.field(default_factory=CompoundValue)


class GeneratorError(Model):
    message: Annotated[str, Needed()] = ""
    resource: Annotated[str, Needed()] = ""


class KubeconfigGeneratorStatus(Model):
    available_resources: Annotated[int, Needed(), Default(0), Format("")] = 0
    conditions: Conditions = []
    errors: list[GeneratorError] = []
    resources: Annotated[int, Needed(), Default(0), Format("")] = 0


class AnyKubeconfigGenerator(Object):
    spec: KubeconfigGeneratorSpec = msgspec.field(default_factory=KubeconfigGeneratorSpec)
    status: KubeconfigGeneratorStatus = msgspec.field(default_factory=KubeconfigGeneratorStatus)


@resource(GROUP, "v1alpha1", "KubeconfigGenerator", "kubeconfiggenerators", namespaced=False)
class KubeconfigGenerator(AnyKubeconfigGenerator):
    """A KubeconfigGenerator makes a kubeconfig for a user in each selected TenantControlPlane."""
