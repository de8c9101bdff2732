"""Names that k0rdent's objects have: namespaces, labels, finalizers, singletons."""

from __future__ import annotations

from homeport.api.k0rdent.v1beta1 import GROUP

SYSTEM_NAMESPACE = "kcm-system"
PROVIDER_NAMESPACE = "capx-system"  # where the guide keeps the global credentials of Nutanix
MANAGEMENT = "kcm"  # the only Management, and the only AccessManagement
KNOWN_PROVIDERS = "homeport.dev/known-providers"  # of Management: those that were added to it once
REPOSITORY = "kcm-templates"  # the HelmRepository that holds the templates of Homeport
FIELD_MANAGER = "k0rdent"

MANAGED_LABEL = f"{GROUP}/managed"
COMPONENT_LABEL = f"{GROUP}/component"
COMPONENT = "kcm"
RELEASE_NAME_LABEL = "helm.toolkit.fluxcd.io/name"
RELEASE_NAMESPACE_LABEL = "helm.toolkit.fluxcd.io/namespace"
PROVIDER_LABEL = "cluster.x-k8s.io/provider"

CLUSTER_FINALIZER = f"{GROUP}/cluster-deployment"
MANAGED = {MANAGED_LABEL: "true"}
