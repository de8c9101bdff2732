"""What k0rdent's controllers do on the cluster that they run on."""

from __future__ import annotations

from homeport.capi.name import BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP, INFRASTRUCTURE_GROUP
from homeport.capi.rule import CONTRACT, DEFINED, OWN, Rule
from homeport.platforms.k0rdent.access.rule import SHARED_TYPES

GROUP = "k0rdent.mirantis.com"
RULES = (
    # Templates become ClusterClasses and templates of Cluster API; a ClusterDeployment becomes what its chart renders.
    Rule(BOOTSTRAP_GROUP, DEFINED, CONTRACT),
    Rule(CONTROL_PLANE_GROUP, DEFINED, CONTRACT),
    Rule(INFRASTRUCTURE_GROUP, DEFINED, CONTRACT),
    Rule("cluster.x-k8s.io", DEFINED, CONTRACT),
    Rule("ipam.cluster.x-k8s.io", DEFINED, CONTRACT),
    Rule("addons.homeport.dev", DEFINED, CONTRACT),
    Rule("k0smotron.io", DEFINED, CONTRACT),
    Rule(GROUP, DEFINED, OWN),
    # Objects that AccessManagements share are copied to other namespaces, and replaced there as a whole.
    Rule(GROUP, tuple(each.__resource__.plural for each in SHARED_TYPES), ("update",)),
    Rule("source.toolkit.fluxcd.io", DEFINED, OWN),
    # Releases of charts, identities of providers, kubeconfigs.
    Rule("", ("configmaps", "secrets"), ("list", *OWN, "update")),
    Rule("", ("namespaces",), ("get", "create")),
)
