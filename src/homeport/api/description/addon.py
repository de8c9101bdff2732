"""Fields of ClusterAddons."""

from __future__ import annotations

from collections.abc import Mapping

FIELDS: Mapping[str, str] = {
    "ClusterAddon.spec": "What to install: an add-on of the catalogue, a chart or manifests; in which Clusters, and how.",
    "ClusterAddon.status": "State of the add-on in its Cluster. With clusterSelector: a summary of all its Clusters.",
    "ClusterAddonSpec.clusterName": "Name of the Cluster of the same namespace that gets the add-on. Set either clusterName or "
    "clusterSelector. It cannot be changed later.",
    "ClusterAddonSpec.clusterSelector": "Labels of the Clusters of the same namespace that get the add-on. Homeport creates one "
    "ClusterAddon with clusterName for each of them. Example: {matchLabels: {env: prod}}.",
    "ClusterAddonSpec.keepOnSelectorMismatch": "If true, a Cluster that no longer matches clusterSelector keeps the add-on. Default: "
    "false, the add-on is removed from it.",
    "ClusterAddonSpec.addon": "Name of an add-on of the catalogue, for example cilium. Set exactly one of addon, chart and manifests.",
    "ClusterAddonSpec.chart": "A Helm chart that is not in the catalogue. Set exactly one of addon, chart and manifests.",
    "ClusterAddonSpec.manifests": "Manifests to apply. Set exactly one of addon, chart and manifests.",
    "ClusterAddonSpec.version": "Version of the chart, for example 1.18.2, or a range such as 1.18.x. Default: the newest version of the "
    "catalogue; a chart that is not in the catalogue needs a version.",
    "ClusterAddonSpec.parameters": "Settings of an add-on of the catalogue, for example addresses of metallb. `homeport addons show "
    "NAME` lists them.",
    "ClusterAddonSpec.values": "Values of the chart. They override the values of the catalogue, valuesFrom and valuesTemplate.",
    "ClusterAddonSpec.valuesTemplate": "Values of the chart as YAML text with Go template actions. .Cluster, .InfrastructureCluster and "
    ".ControlPlane are the objects of the Cluster, .Namespace is the namespace of the add-on, .Facts has name, namespace, host, port, podCIDR, serviceCIDR, version "
    "and provider. Example: `k8sServiceHost: {{ .Facts.host }}`.",
    "ClusterAddonSpec.valuesFrom": "ConfigMaps and Secrets of the same namespace with values of the chart. Later entries override earlier ones.",
    "ClusterAddonSpec.secrets": "Secrets of the same namespace that Homeport copies to the workload cluster before it installs the "
    "add-on. Changes are copied, too.",
    "ClusterAddonSpec.namespace": "Namespace of the workload cluster for the add-on. Default: the one of the catalogue, otherwise default.",
    "ClusterAddonSpec.createNamespace": "If true, Homeport creates the namespace if it does not exist. Homeport never deletes "
    "namespaces. Default: true.",
    "ClusterAddonSpec.releaseName": "Name of the Helm release. Default: the name of the catalogue entry, or of the ClusterAddon.",
    "ClusterAddonSpec.skipCRDs": "If true, CustomResourceDefinitions of the chart's crds folder are not installed. Default: false.",
    "ClusterAddonSpec.disableHooks": "If true, the hooks of the chart do not run when it is installed or upgraded. Default: false.",
    "ClusterAddonSpec.dependsOn": "ClusterAddons of the same namespace that must be Ready in the Cluster first. Removal is in reverse order.",
    "ClusterAddonSpec.deletionPolicy": "What happens in the workload cluster when the ClusterAddon is deleted. Delete removes the add-on, "
    "Orphan leaves it there. Default: Delete.",
    "ClusterAddonSpec.syncPolicy": "When the add-on is applied. Continuous also repairs changes that are made in the workload "
    "cluster, OnChange applies only changes of the ClusterAddon. Default: Continuous.",
    "ClusterAddonSpec.conflictPolicy": "What happens if an object of the manifests already exists in the workload cluster and belongs to "
    "something else. Refuse reports it. Adopt takes it over; it is then deleted with the add-on. Yield reports it as well, but lets Helm "
    "install a release with the name of the add-on's release: Helm takes over its objects, and the add-on leaves them alone as long as that "
    "release exists. Helm does not list the release of such an add-on. Default: Refuse.",
    "ClusterAddonSpec.driftIgnore": "Fields that others may change in the workload cluster, for example the replicas of a Deployment "
    "with an autoscaler.",
    "ClusterAddonSpec.wait": "If true, the add-on is Ready when all its objects are. If false, it is Ready when it is applied. Default: true.",
    "ClusterAddonSpec.timeout": "How long objects may take to become ready before the add-on is reported as failed. Homeport continues "
    "to wait. Default: 10m.",
    "ClusterAddonSpec.paused": "If true, Homeport neither changes nor removes the add-on. Default: false.",
    "NameRef.name": "Name of the object, in the namespace of the ClusterAddon.",
    "configMapRef": "ConfigMap of the same namespace to read from.",
    "secretRef": "Secret of the same namespace to read from.",
    "ManifestSource.inline": "Manifests as text: YAML documents separated by ---, or JSON.",
    "ManifestSource.template": "If true, the text is a Go template with the same data as valuesTemplate. Default: false.",
    "ValuesSource.key": "Key of the data that holds the values. * merges all keys in the order of their names. Default: values.yaml.",
    "ValuesSource.optional": "If true, the object or its key may be missing. Default: false.",
    "ValuesSource.template": "If true, the text is a Go template with the same data as valuesTemplate. Default: false.",
    "ChartSource.repository": "Address of the chart repository (https://) or registry (oci://). "
    "Example: https://charts.jetstack.io.",
    "ChartSource.configMapRef": "ConfigMap with the chart: an archive in a key that ends in .tgz, or its files as keys.",
    "ChartSource.secretRef": "Secret with the chart: an archive in a key that ends in .tgz, or its files as keys.",
    "ChartSource.path": "Folder of the chart in the archive of configMapRef or secretRef. Default: its root.",
    "ChartSource.name": "Name of the chart in the repository. Not needed if an oci:// address already ends with it.",
    "ChartSource.digest": "Expected digest of the chart archive, sha256:... Any other archive is refused.",
    "ChartSource.credentialsRef": "Secret with username and password for the repository, and optionally ca.crt.",
    "ChartSource.insecureHTTP": "If true, the repository may be read without TLS. Default: false.",
    "CopiedSecret.name": "Name of the Secret in the management cluster.",
    "CopiedSecret.targetName": "Name of the copy in the workload cluster. Default: the same name.",
    "CopiedSecret.targetNamespace": "Namespace of the copy in the workload cluster. Default: the namespace of the add-on.",
    "Dependency.name": "Name of a ClusterAddon of the same namespace. It may select its Clusters by label.",
    "DriftRule.apiVersion": "Version of the objects' API, for example apps/v1. Default: any.",
    "DriftRule.kind": "Kind of the objects, for example Deployment.",
    "DriftRule.namespace": "Namespace of the object. Default: any.",
    "DriftRule.name": "Name of the object. Default: any.",
    "DriftRule.paths": "JSON pointers of the fields. Example: /spec/replicas.",
    "ReleaseStatus.name": "Name of the release.",
    "ReleaseStatus.namespace": "Namespace of the release in the workload cluster.",
    "ReleaseStatus.revision": "Revision of the release. It increases with each install, upgrade and rollback.",
    "ReleaseStatus.status": "Status of the release as Helm reports it, for example deployed.",
    "ClusterAddonCluster.name": "Name of the Cluster.",
    "ClusterAddonCluster.addon": "Name of the ClusterAddon that installs the add-on in this Cluster.",
    "ClusterAddonCluster.ready": "True when the add-on is Ready in this Cluster.",
    "ClusterAddonCluster.phase": "Phase of the add-on in this Cluster.",
    "ClusterAddonCluster.version": "Version that is installed in this Cluster.",
    "ClusterAddonCluster.reason": "Reason of the Ready condition in this Cluster.",
    "ClusterAddonCluster.message": "What the add-on waits for in this Cluster.",
    "ClusterAddonStatus.observedGeneration": "Generation of the spec that the status is about.",
    "ClusterAddonStatus.phase": "Pending, Installing, Upgrading, Installed, Degraded, Failed, Paused or Deleting.",
    "ClusterAddonStatus.version": "Version that is installed.",
    "ClusterAddonStatus.targetVersion": "Version that the spec asks for. During an upgrade it differs from version.",
    "ClusterAddonStatus.release": "Helm release in the workload cluster, if the add-on is a chart.",
    "ClusterAddonStatus.objectCount": "Number of objects of the add-on in the workload cluster.",
    "ClusterAddonStatus.digest": "Digest of what was applied last. It changes with the manifests, the chart and its values.",
    "ClusterAddonStatus.attemptedAt": "Time at which the present digest was applied for the first time.",
    "ClusterAddonStatus.clusters": "State in each Cluster, if the add-on selects Clusters by label.",
    "ClusterAddonStatus.clusterCount": "Clusters in which the add-on is Ready, and all Clusters: 2/3.",
    "ClusterAddonStatus.conditions": "Ready is True when the add-on is installed and its objects are ready; otherwise its reason and message "
    "report what it waits for. Installed is True when the present spec is applied.",
}  # fmt: skip
