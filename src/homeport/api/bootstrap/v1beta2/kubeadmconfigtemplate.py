"""KubeadmConfigTemplate: what KubeadmConfigs are made by."""

from __future__ import annotations

import msgspec

from homeport.api.bootstrap.v1beta2.kubeadmconfig import KubeadmConfigSpec
from homeport.api.cluster.v1beta2.reference import TemplateMeta
from homeport.api.field import NonEmpty
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Required


class KubeadmConfigTemplateResource(NonEmpty):
    """The KubeadmConfig to make."""

    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    spec: KubeadmConfigSpec = msgspec.field(default_factory=KubeadmConfigSpec)


class KubeadmConfigTemplateSpec(Model):
    """Holds the template."""

    template: Required[KubeadmConfigTemplateResource] = msgspec.field(default_factory=KubeadmConfigTemplateResource)


@resource("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfigTemplate", "kubeadmconfigtemplates")
class KubeadmConfigTemplate(Object):
    """A KubeadmConfigTemplate is the template of KubeadmConfigs, one for each Machine."""

    spec: KubeadmConfigTemplateSpec = msgspec.field(default_factory=KubeadmConfigTemplateSpec)
