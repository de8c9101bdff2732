"""Parts that both versions of the k0s kinds share."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from homeport.api.core.v1 import ObjectReference
from homeport.api.field import Condition, NonEmpty
from homeport.api.meta import Model
from homeport.api.schema import Default, Enum, Mark, Preserve, Required, Size

BOOTSTRAP_GROUP = "bootstrap.cluster.x-k8s.io"
CONTROL_PLANE_GROUP = "controlplane.cluster.x-k8s.io"

INSTALL_DIR = "/usr/local/bin"
STRATEGIES = ("InPlace", "Recreate", "RecreateDeleteFirst")

Preserved = Annotated[dict[str, Any], Preserve()]
Conditions = list[Condition]
UpdateStrategy = Annotated[str, Enum(STRATEGIES), Default("InPlace")]


class ObjectMetaFields(Model):
    """The metadata of an object that is made from this one."""

    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    labels: dict[str, str] = {}
    name: str = ""
    namespace: str = ""


class EmbeddedMeta(ObjectMetaFields):
    pass


class SecretMeta(Model):
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class ContentRef(Model):
    key: Required[str] = ""
    name: Required[str] = ""


class ContentSource(Model):
    config_map_ref: ContentRef | None = None
    secret_ref: ContentRef | None = None


class File(Model):
    content: str = ""
    content_from: ContentSource | None = None
    path: str = ""
    permissions: str = ""


class Ignition(Model):
    additional_config: str = ""
    variant: Required[Annotated[str, Enum(("fcos", "flatcar", "openshift", "r4e", "fiot"))]] = ""
    version: Required[str] = ""


class Tunneling(Model):
    enabled: Annotated[bool, Default(False)] = False
    mode: Annotated[str, Enum(("tunnel", "proxy")), Default("tunnel")] = "tunnel"
    server_address: str = ""
    server_node_port: Annotated[int, Default(31700)] = 31700
    tunneling_node_port: Annotated[int, Default(31443)] = 31443


class InstallSpec(Model):
    """How k0s gets on a machine: what all kinds and versions say in the same words."""

    args: list[str] = []
    download_url: str = msgspec.field(default="", name="downloadURL")
    files: list[File] = []
    k0s_install_dir: Annotated[str, Default(INSTALL_DIR)] = INSTALL_DIR
    pre_installed_k0s: bool = False
    use_system_hostname: Annotated[bool, Default(False)] = False
    working_dir: str = ""


class ReplicaMeta(NonEmpty):
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class MachineTemplate(Model):
    infrastructure_ref: Required[ObjectReference | None] = None
    metadata: ReplicaMeta = msgspec.field(default_factory=ReplicaMeta)


class TemplateMachineTemplate(Model):
    metadata: ReplicaMeta = msgspec.field(default_factory=ReplicaMeta)
    node_deletion_timeout: str = ""
    node_drain_timeout: str = ""
    node_volume_detach_timeout: str = ""


class ControlPlaneInitialization(Model):
    control_plane_initialized: bool | None = None


class ControlPlaneSpec(Model):
    """What both versions of a K0sControlPlane have besides the settings of k0s."""

    kubeconfig_secret_metadata: SecretMeta = msgspec.field(default_factory=SecretMeta)
    machine_template: Required[MachineTemplate] = msgspec.field(default_factory=MachineTemplate)
    replicas: Annotated[int, Default(1)] = 1
    update_strategy: UpdateStrategy = "InPlace"
    version: str = ""


class TemplateSpec(Model):
    """What both versions of a K0sControlPlaneTemplate have besides the settings of k0s."""

    machine_template: TemplateMachineTemplate | None = None
    update_strategy: UpdateStrategy = "InPlace"
    version: str = ""


class V1Beta1Status(Model):
    """Status of a control plane that runs k0s, on machines or as Pods, in v1beta1."""

    conditions: Conditions = []
    external_managed_control_plane: bool = False
    initialization: ControlPlaneInitialization = msgspec.field(default_factory=ControlPlaneInitialization)
    initialized: bool = False
    ready: bool = False
    ready_replicas: int = 0
    replicas: int = 0
    selector: str = ""
    unavailable_replicas: int = 0
    updated_replicas: int = 0
    version: str = ""


class SetInitialization(ControlPlaneInitialization):
    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)


class V1Beta2Status(Model):
    """Status of a control plane that runs k0s, on machines or as Pods, in v1beta2."""

    available_replicas: int | None = None
    conditions: Conditions = []
    external_managed_control_plane: bool | None = None
    initialization: SetInitialization = msgspec.field(default_factory=SetInitialization)
    ready_replicas: int | None = None
    replicas: int | None = None
    selector: str = ""
    up_to_date_replicas: int | None = None
    version: str = ""
