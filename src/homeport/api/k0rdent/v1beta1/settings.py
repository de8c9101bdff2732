"""Settings that clusters refer to: data sources, authentication, audit policies."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions, Long
from homeport.api.k0rdent.v1beta1.part import (
    GROUP,
    IMMUTABLE,
    VERSION,
    AtomicStrings,
    Block,
    Reported,
    SecretKeyRef,
    Strings,
)
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, ListType, Required


class DataSourceAuth(Model):
    """The account of the database."""

    username: Required[SecretKeyRef] = msgspec.field(default_factory=SecretKeyRef)
    password: Required[SecretKeyRef] = msgspec.field(default_factory=SecretKeyRef)


class DataSourceSpec(Model):
    """A database server, and the account for it."""

    __schema__ = (IMMUTABLE,)

    type: Required[Annotated[str, Enum(("postgresql",))]] = ""
    endpoints: Required[Strings] = []
    auth: Required[DataSourceAuth] = msgspec.field(default_factory=DataSourceAuth)
    certificate_authority: SecretKeyRef | None = None


@resource(GROUP, VERSION, "DataSource", "datasources")
class DataSource(Object):
    """A DataSource is a database server for control planes."""

    spec: Required[DataSourceSpec] = msgspec.field(default_factory=DataSourceSpec)
    status: Reported = msgspec.field(default_factory=Reported)


class ClusterDataSourceSpec(Model):
    """The database of one cluster."""

    schema: Required[Annotated[str, IMMUTABLE]] = ""
    data_source: Required[str] = ""


class ClusterDataSourceStatus(Model):
    """Secrets with the account of the cluster."""

    ready: bool = False
    error: str = ""
    kine_data_source_secret: str = ""
    ca_secret: str = ""
    conditions: Conditions = []
    observed_generation: Long = 0


@resource(GROUP, VERSION, "ClusterDataSource", "clusterdatasources")
class ClusterDataSource(Object):
    """A ClusterDataSource is the database of one cluster in a DataSource."""

    spec: Required[ClusterDataSourceSpec] = msgspec.field(default_factory=ClusterDataSourceSpec)
    status: ClusterDataSourceStatus = msgspec.field(default_factory=ClusterDataSourceStatus)


class ClusterAuthenticationSpec(Model):
    """How users of clusters log in."""

    authentication_configuration: Block | None = None
    ca_secret: SecretKeyRef | None = None


@resource(GROUP, VERSION, "ClusterAuthentication", "clusterauthentications")
class ClusterAuthentication(Object):
    """A ClusterAuthentication says how users of clusters log in."""

    spec: ClusterAuthenticationSpec = msgspec.field(default_factory=ClusterAuthenticationSpec)
    status: Reported = msgspec.field(default_factory=Reported)


class AuditedResources(Model):
    """Resources of an API group."""

    group: str = ""
    resources: AtomicStrings = []
    resource_names: AtomicStrings = []


class AuditRule(Model):
    """What is recorded of which requests."""

    level: Required[str] = ""
    namespaces: AtomicStrings = []
    non_resource_urls: AtomicStrings = msgspec.field(default_factory=list, name="nonResourceURLs")
    omit_managed_fields: bool | None = None
    omit_stages: AtomicStrings = []
    resources: Annotated[list[AuditedResources], ListType("atomic")] = []
    user_groups: AtomicStrings = []
    users: AtomicStrings = []
    verbs: AtomicStrings = []


class AuditPolicy(Model):
    """Rules, of which the first that fits a request counts."""

    rules: Required[Annotated[list[AuditRule], ListType("atomic")]] = []
    omit_stages: AtomicStrings = []
    omit_managed_fields: bool | None = None


class ClusterAuditPolicySpec(Model):
    """What API servers record."""

    __schema__ = (IMMUTABLE,)

    policy: Required[AuditPolicy] = msgspec.field(default_factory=AuditPolicy)


@resource(GROUP, VERSION, "ClusterAuditPolicy", "clusterauditpolicies")
class ClusterAuditPolicy(Object):
    """A ClusterAuditPolicy says what the API servers of clusters record."""

    spec: Required[ClusterAuditPolicySpec] = msgspec.field(default_factory=ClusterAuditPolicySpec)
    status: Reported = msgspec.field(default_factory=Reported)
