"""Team, User and ClusterCreationPolicy: who may make clusters, how many, and of which parts."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.butler.v1alpha1.part import (
    GROUP,
    VERSION,
    ClusterDefaults,
    LocalRef,
    Percent,
    ProviderRef,
    ProviderType,
    SecretRef,
    Some,
    Text,
)
from homeport.api.field import Conditions, Long, Quantity, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Format, ListType, Pattern, Required, Rule, Size

ROLES = ("admin", "operator", "viewer")
Role = Annotated[str, Enum(ROLES)]


class TeamUser(Model):
    """A user of a team, and the role that the user has in it."""

    name: Required[Text] = ""
    role: Role = ""


class TeamGroup(Model):
    """A group of a team, and the role that its members have in it."""

    name: Required[Text] = ""
    role: Role = ""
    identity_provider: str = ""


class TeamAccess(Model):
    """Members of a team or of one of its environments."""

    users: Annotated[list[TeamUser], ListType("atomic")] = []
    groups: Annotated[list[TeamGroup], ListType("atomic")] = []


class TeamLimits(Model):
    """The most that all clusters of a team may use, and what they may be made of."""

    max_clusters: Some | None = None
    max_nodes_per_cluster: Some | None = None
    max_workers_per_cluster: Some | None = None
    max_total_nodes: Some | None = None
    max_total_workers: Some | None = None
    max_cpu_cores: Quantity = msgspec.field(default="", name="maxCPUCores")
    max_memory: Quantity = ""
    max_storage: Quantity = ""
    default_node_count: Some | None = None
    default_cpu_per_node: Quantity = msgspec.field(default="", name="defaultCPUPerNode")
    default_memory_per_node: Quantity = ""
    allowed_kubernetes_versions: list[str] = []
    allowed_providers: list[str] = []
    allowed_addons: list[str] = []
    denied_addons: list[str] = []


class EnvironmentLimits(Model):
    """The most clusters of an environment."""

    max_clusters: Some | None = None
    max_clusters_per_member: Some | None = None


class Environment(Model):
    """An environment of a team, for example production."""

    name: Required[Annotated[str, Size(1, 63), Pattern("^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")]] = ""
    description: str = ""
    limits: EnvironmentLimits | None = None
    access: TeamAccess | None = None
    cluster_defaults: ClusterDefaults | None = None


class TeamSpec(Model):
    """Members, limits and defaults of a team."""

    display_name: str = ""
    description: str = ""
    provider_config_ref: ProviderRef | None = None
    access: TeamAccess | None = None
    resource_limits: TeamLimits | None = None
    quotas: TeamLimits | None = None
    cluster_defaults: ClusterDefaults | None = None
    defaults: ClusterDefaults | None = None
    environments: Annotated[list[Environment], ListType("map", ("name",))] = []


class TeamUsage(Model):
    """What the clusters of a team use."""

    clusters: int = 0
    total_nodes: int = 0
    total_cpu: Quantity = msgspec.field(default="", name="totalCPU")
    total_memory: Quantity = ""
    total_storage: Quantity = ""
    cluster_utilization: Percent | None = None
    node_utilization: Percent | None = None
    cpu_utilization: Percent | None = None
    memory_utilization: Percent | None = None
    storage_utilization: Percent | None = None


class EnvironmentUsage(Model):
    """What the clusters of an environment use."""

    name: Required[str] = ""
    clusters: int = 0


class TeamStatus(Model):
    """Namespace, members and usage of a team."""

    conditions: Conditions = []
    observed_generation: Long = 0
    phase: Annotated[str, Enum(("Pending", "Ready", "Terminating", "Failed"))] = ""
    namespace: str = ""
    cluster_count: int = 0
    member_count: int = 0
    resource_usage: TeamUsage | None = None
    environments: Annotated[list[EnvironmentUsage], ListType("map", ("name",))] = []
    quota_status: Annotated[str, Enum(("OK", "Warning", "Exceeded"))] = ""
    quota_message: str = ""


@resource(GROUP, VERSION, "Team", "teams", namespaced=False)
class Team(Object):
    """A Team is a group of people with a namespace, clusters and limits of their own."""

    spec: TeamSpec = msgspec.field(default_factory=TeamSpec)
    status: TeamStatus = msgspec.field(default_factory=TeamStatus)


class SshKey(Model):
    """A public SSH key of a user."""

    name: Required[Annotated[str, Size(1, 63)]] = ""
    public_key: Required[Annotated[str, Size(1, 16384)]] = ""
    fingerprint: str = ""
    added_at: Time | None = None


class UserSpec(Model):
    """A person who uses the platform."""

    email: Required[Annotated[str, Format("email"), Size(3, 254)]] = ""
    display_name: str = ""
    avatar: str = ""
    disabled: bool = False
    auth_type: Annotated[str, Enum(("internal", "local", "sso"))] = ""
    sso_provider: str = ""
    sso_subject: str = ""
    is_platform_admin: bool | None = None
    platform_role: Annotated[str, Enum(("admin", "viewer", ""))] | None = None
    ssh_keys: Annotated[list[SshKey], ListType("map", ("name",))] = []


class Membership(Model):
    """A team that a user belongs to."""

    name: Required[str] = ""
    role: Required[str] = ""


class UserStatus(Model):
    """Access and memberships of a user."""

    conditions: Conditions = []
    observed_generation: Long = 0
    phase: Annotated[str, Enum(("Pending", "Active", "Disabled", "Locked"))] = ""
    teams: Annotated[list[Membership], ListType("map", ("name",))] = []
    password_secret_ref: SecretRef | None = None
    invite_token_hash: str = ""
    invite_expires_at: Time | None = None
    invite_sent_at: Time | None = None
    password_changed_at: Time | None = None
    last_login_time: Time | None = None
    login_count: Long = 0
    failed_login_attempts: int = 0
    locked_until: Time | None = None


@resource(GROUP, VERSION, "User", "users", namespaced=False)
class User(Object):
    """A User is a person who uses the platform."""

    spec: Required[UserSpec] = msgspec.field(default_factory=UserSpec)
    status: UserStatus = msgspec.field(default_factory=UserStatus)


class Everywhere(Model):
    """Clusters of all teams. It has no settings."""


class TeamScope(Model):
    """Clusters of one team."""

    team_ref: Required[LocalRef] = msgspec.field(default_factory=LocalRef)


class EnvironmentScope(Model):
    """Clusters of one environment of one team."""

    team_ref: Required[LocalRef] = msgspec.field(default_factory=LocalRef)
    environment_name: Required[Annotated[str, Size(1, 63)]] = ""


class PolicyScope(Model):
    """Clusters that a policy applies to."""

    __schema__ = (
        Rule(
            "[has(self.platformWide), has(self.clusterWide), has(self.team), has(self.teamAndEnvironment)]"
            ".filter(each, each).size() == 1",
            "set exactly one of platformWide, team and teamAndEnvironment",
        ),
    )

    platform_wide: Everywhere | None = None
    cluster_wide: Everywhere | None = None
    team: TeamScope | None = None
    team_and_environment: EnvironmentScope | None = None


class PolicyOption(Model):
    """Rule for one choice that a cluster makes."""

    mode: Required[Annotated[str, Enum(("pin", "allowList", "default", "recommended"))]] = ""
    values: list[str] = []
    default: str = ""
    recommended_reason: Annotated[str, Size(None, 120)] = ""


class ClusterCreationPolicySpec(Model):
    """Clusters that the policy applies to, and its rules."""

    scope: Required[PolicyScope] = msgspec.field(default_factory=PolicyScope)
    target_providers: list[ProviderType] = []
    options: dict[str, PolicyOption] = {}


class ClusterCreationPolicyStatus(Model):
    """State of a policy."""

    conditions: Conditions = []
    observed_generation: Long = 0
    stale_references: list[str] = []


@resource(GROUP, VERSION, "ClusterCreationPolicy", "clustercreationpolicies", namespaced=False)
class ClusterCreationPolicy(Object):
    """A ClusterCreationPolicy limits which images, networks, clusters and storage tenant clusters use."""

    spec: Required[ClusterCreationPolicySpec] = msgspec.field(default_factory=ClusterCreationPolicySpec)
    status: ClusterCreationPolicyStatus = msgspec.field(default_factory=ClusterCreationPolicyStatus)
