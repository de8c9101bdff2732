"""Parts that both versions of the remote machine kinds share."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from homeport.api.field import NonEmpty
from homeport.api.infrastructure import TemplateResource
from homeport.api.k0s.part import EmbeddedMeta
from homeport.api.meta import Model
from homeport.api.schema import Default, Preserve, Range, Required, Size

GROUP = "infrastructure.cluster.x-k8s.io"
WORKING_DIR = "/etc/k0smotron"


class SecretRef(Model):
    name: Required[str] = ""


class ProvisionJob(Model):
    job_spec_template: Annotated[dict[str, Any], Preserve()] = {}
    scp_command: Annotated[str, Default("scp")] = "scp"
    ssh_command: Annotated[str, Default("ssh")] = "ssh"


class AccessSpec(Model):
    """How to reach a machine, and how to run commands there."""

    commands_as_script: Annotated[bool, Default(False)] = False
    port: Annotated[int, Range(1, 65535), Default(22)] = 22
    use_sudo: bool = False
    user: Annotated[str, Default("root")] = "root"
    working_dir: Annotated[str, Default(WORKING_DIR)] = WORKING_DIR


class MachineRef(Model):
    name: Required[str] = ""
    namespace: Required[str] = ""


class PooledStatus(Model):
    machine_ref: Required[MachineRef] = msgspec.field(default_factory=MachineRef)
    reserved: Required[bool] = False


class Endpoint(NonEmpty):
    host: Annotated[str, Size(1, 512)] = ""
    port: Annotated[int, Range(1, 65535)] = 0


class ClusterSpec(Model):
    control_plane_endpoint: Endpoint = msgspec.field(default_factory=Endpoint)


class ClusterTemplateResource(TemplateResource):
    spec: Required[ClusterSpec] = msgspec.field(default_factory=ClusterSpec)


class ClusterTemplateSpec(Model):
    template: Required[ClusterTemplateResource] = msgspec.field(default_factory=ClusterTemplateResource)


class PoolSpec(Model):
    """Machines made from a template come from a pool."""

    pool: Required[str] = ""
    provision_job: ProvisionJob | None = None


class MachineTemplateResource(Model):
    metadata: EmbeddedMeta = msgspec.field(default_factory=EmbeddedMeta)
    spec: PoolSpec = msgspec.field(default_factory=PoolSpec)


class MachineTemplateSpec(Model):
    template: Required[MachineTemplateResource] = msgspec.field(default_factory=MachineTemplateResource)
