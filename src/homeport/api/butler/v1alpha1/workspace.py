"""IdentityProvider, Workspace and WorkspaceTemplate: kinds that are stored and not acted on."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.butler.v1alpha1.part import GROUP, VERSION, LocalRef, SecretRef, Text
from homeport.api.field import Conditions, Long, Quantity, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Format, Pattern, Required


class GoogleWorkspace(Model):
    """How groups of Google Workspace are read."""

    service_account_secret_ref: Required[SecretRef] = msgspec.field(default_factory=SecretRef)
    admin_email: Required[Annotated[str, Format("email")]] = ""


class OidcProvider(Model):
    """An OpenID Connect provider."""

    issuer_url: Annotated[str, Pattern("^https://")] = ""
    issuer: Annotated[str, Pattern("^https://")] = ""
    client_id: Required[Text] = ""
    client_secret_ref: Required[SecretRef] = msgspec.field(default_factory=SecretRef)
    redirect_url: Required[Annotated[str, Pattern("^https?://")]] = ""
    scopes: list[str] = []
    groups_claim: str = ""
    email_claim: str = ""
    hosted_domain: str = ""
    insecure_skip_verify: bool = False
    google_workspace: GoogleWorkspace | None = None


class RoleGroup(Model):
    """A group whose members have a role in the whole platform."""

    name: Required[Text] = ""
    role: Required[Annotated[str, Enum(("admin", "viewer"))]] = ""


class IdentityProviderSpec(Model):
    """An identity provider that users log in with."""

    type: Required[Annotated[str, Enum(("oidc",))]] = ""
    display_name: str = ""
    oidc: OidcProvider | None = None
    platform_role_groups: list[RoleGroup] = []


class DiscoveredEndpoints(Model):
    """Addresses that an identity provider publishes."""

    authorization_endpoint: str = ""
    token_endpoint: str = ""
    user_info_endpoint: str = ""
    jwks_uri: str = msgspec.field(default="", name="jwksURI")


class IdentityProviderStatus(Model):
    """State of an identity provider."""

    conditions: Conditions = []
    observed_generation: Long = 0
    phase: Annotated[str, Enum(("Pending", "Ready", "Failed"))] = ""
    discovered_endpoints: DiscoveredEndpoints | None = None
    last_validated_time: Time | None = None
    message: str = ""


@resource(GROUP, VERSION, "IdentityProvider", "identityproviders", namespaced=False)
class IdentityProvider(Object):
    """An IdentityProvider is a service that users log in with. It is stored and not acted on."""

    spec: Required[IdentityProviderSpec] = msgspec.field(default_factory=IdentityProviderSpec)
    status: IdentityProviderStatus = msgspec.field(default_factory=IdentityProviderStatus)


class WorkspaceRepository(Model):
    """A Git repository that is cloned into a workspace."""

    url: Required[Text] = ""
    branch: str = ""
    name: str = ""
    secret_ref: LocalRef | None = None


class WorkspaceSource(Model):
    """A workload whose environment variables a workspace gets."""

    kind: Annotated[str, Enum(("Deployment", "StatefulSet"))] = ""
    name: Required[Text] = ""
    namespace: str = ""
    container: str = ""


class WorkspaceResources(Model):
    """Size of a workspace."""

    cpu: str = ""
    memory: str = ""


class Dotfiles(Model):
    """A Git repository with the settings of a developer."""

    url: Required[Text] = ""
    install_command: str = ""


class EditorConfig(Model):
    """Settings of the editor in a workspace."""

    neovim_init_lua: str = ""
    neovim_config_repo: str = ""
    neovim_config_archive: str = ""


class WorkspaceParts(Model):
    """What workspaces and their templates have in common."""

    image: Required[Text] = ""
    repository: WorkspaceRepository | None = None
    repositories: list[WorkspaceRepository] = []
    env_from: WorkspaceSource | None = None
    resources: WorkspaceResources | None = None
    storage_size: Quantity = ""
    dotfiles: Dotfiles | None = None


class WorkspaceSpec(WorkspaceParts):
    """A development environment in a tenant cluster."""

    cluster_ref: Required[LocalRef] = msgspec.field(default_factory=LocalRef)
    owner: Required[Text] = ""
    editor_config: EditorConfig | None = None
    ssh_public_keys: list[str] = []
    idle_timeout: str = ""
    auto_stop_after: str = ""


class WorkspaceStatus(Model):
    """State of a workspace."""

    conditions: Conditions = []
    observed_generation: Long = 0
    phase: Annotated[str, Enum(("Pending", "Creating", "Running", "Starting", "Stopped", "Failed"))] = ""
    connected: bool = False
    pod_name: str = ""
    pvc_name: str = ""
    service_name: str = ""
    ssh_endpoint: str = ""
    last_activity_time: Time | None = None
    last_disconnect_time: Time | None = None


@resource(GROUP, VERSION, "Workspace", "workspaces")
class Workspace(Object):
    """A Workspace is a development environment in a tenant cluster. It is stored and not acted on."""

    spec: Required[WorkspaceSpec] = msgspec.field(default_factory=WorkspaceSpec)
    status: WorkspaceStatus = msgspec.field(default_factory=WorkspaceStatus)


class WorkspaceTemplateSpec(Model):
    """A blueprint for workspaces."""

    display_name: Required[Text] = ""
    description: str = ""
    icon: str = ""
    category: Annotated[str, Enum(("backend", "frontend", "data", "devops", "custom"))] = ""
    scope: Annotated[str, Enum(("cluster", "team"))] = ""
    template: Required[WorkspaceParts] = msgspec.field(default_factory=WorkspaceParts)


class WorkspaceTemplateStatus(Model):
    """State of a workspace template."""

    conditions: Conditions = []
    observed_generation: Long = 0


@resource(GROUP, VERSION, "WorkspaceTemplate", "workspacetemplates")
class WorkspaceTemplate(Object):
    """A WorkspaceTemplate is a blueprint for workspaces. It is stored and not acted on."""

    spec: Required[WorkspaceTemplateSpec] = msgspec.field(default_factory=WorkspaceTemplateSpec)
    status: WorkspaceTemplateStatus = msgspec.field(default_factory=WorkspaceTemplateStatus)
