"""Kamaji's kinds: the same as Steward's, in a group of their own."""

from __future__ import annotations

from homeport.api.meta import resource
from homeport.api.steward.v1alpha1 import AnyDataStore, AnyKubeconfigGenerator, AnyTenantControlPlane

GROUP = "kamaji.clastix.io"


@resource(GROUP, "v1alpha1", "TenantControlPlane", "tenantcontrolplanes")
class TenantControlPlane(AnyTenantControlPlane):
    """A TenantControlPlane is the control plane of a Kubernetes cluster that runs as Pods of this cluster."""


@resource(GROUP, "v1alpha1", "DataStore", "datastores", namespaced=False)
class DataStore(AnyDataStore):
    """A DataStore is where the data of TenantControlPlanes is kept: an etcd, or a database that kine speaks to."""


@resource(GROUP, "v1alpha1", "KubeconfigGenerator", "kubeconfiggenerators", namespaced=False)
class KubeconfigGenerator(AnyKubeconfigGenerator):
    """A KubeconfigGenerator makes a kubeconfig for a user in each selected TenantControlPlane."""
