"""Fields of the kinds that run k0s on machines."""

from __future__ import annotations

from collections.abc import Mapping

_USER_DATA = "Further user data that is merged with the generated one, from a Secret or ConfigMap."
_IGNITION = "Settings of the format ignition. Required with it, and not allowed otherwise."
_BEFORE = "Shell commands that run in order before k0s is downloaded and installed."
_AFTER = "Shell commands that run in order after the service of k0s was started."

FIELDS: Mapping[str, str] = {
    # -- kinds -------------------------------------------------------------------------------------------------------
    "K0sWorkerConfig.spec": "How k0s is installed and started on the machine.",
    "K0sWorkerConfig.status": "Secret with the bootstrap data, and conditions.",
    "K0sWorkerConfigTemplate.spec": "Template of the K0sWorkerConfigs of a MachineDeployment or MachinePool.",
    "K0sWorkerConfigTemplateSpec.template": "The K0sWorkerConfig to create for each Machine.",
    "K0sWorkerConfigTemplateResource.spec": "How k0s is installed and started on each machine.",
    "K0sControllerConfig.spec": "How k0s is installed and started on the machine. A K0sControlPlane creates this object.",
    "K0sControllerConfig.status": "Secret with the bootstrap data, and conditions.",
    "K0sControlPlane.spec": "Desired state of the control plane: version, number of Machines, and how they are made.",
    "K0sControlPlane.status": "Observed state of the control plane: how many Machines are ready, and conditions.",
    "K0sControlPlaneTemplate.spec": "Template for the control planes of a ClusterClass.",
    "K0sControlPlaneTemplateSpec.template": "The K0sControlPlane to create for each Cluster of the class.",
    "K0sControlPlaneTemplateResource.spec": "Desired state of each control plane. Replicas and infrastructure come from the "
    "Cluster and its class.",
    "EmbeddedMeta.name": "Not read: the object is named after its Machine or Cluster.",
    "EmbeddedMeta.namespace": "Not read: the object is in the namespace of the Cluster.",
    "EmbeddedMeta.finalizers": "Finalizers to set on the object, as a list. Usually left out.",
    "labels": "Labels to set on the object, as a map of strings, for example tier: web.",
    "annotations": "Annotations to set on the object, as a map of strings.",
    # -- installation ------------------------------------------------------------------------------------------------
    "args": "Further flags of `k0s install`, for example --enable-worker or --labels=tier=web. Labels that kubelet may not "
    "set itself are set on the Node after it joined.",
    "downloadURL": "URL of the k0s binary, for example on a server of a site without internet access: http, https or oci. "
    "Default: the script of get.k0s.sh downloads the version.",
    "files": "Files to write to the host before k0s runs.",
    "k0sInstallDir": "Folder of the k0s binary on the host. Default: /usr/local/bin.",
    "preInstalledK0s": "True uses the k0s binary that is on the image, and downloads nothing. Default: false.",
    "useSystemHostname": "True names the Node after the hostname of the machine instead of its Machine. Default: false.",
    "workingDir": "Folder of files that are needed during the installation. Default: /etc/k0smotron.",
    "preK0sCommands": _BEFORE,
    "postK0sCommands": _AFTER,
    "preStartCommands": _BEFORE,
    "postStartCommands": _AFTER,
    "K0sWorkerConfigSpec.version": "Version of k0s, for example v1.33.4+k0s.0. A version without a suffix means its first "
    "build, k0s.0. Default: the version of the Machine.",
    "K0sControllerConfigSpec.version": "Version of k0s, for example v1.33.4+k0s.0. Default: the version of the Machine.",
    "provisioner": "Format of the user data. Only the type cloud-config is supported.",
    "Provisioner.type": "Format: cloud-config, ignition, powershell or powershell-xml. Default: cloud-config.",
    "Provisioner.platform": "Operating system of the machine: linux or windows. Default: linux.",
    "Provisioner.ignition": _IGNITION,
    "Provisioner.customUserDataRef": _USER_DATA,
    "ignition": _IGNITION,
    "customUserDataRef": _USER_DATA,
    "Ignition.variant": "Variant of Butane: fcos, flatcar, openshift, r4e or fiot.",
    "Ignition.version": "Version of the variant's specification, for example 1.5.0.",
    "Ignition.additionalConfig": "Ignition configuration as JSON or YAML that is merged into the generated one.",
    "secretMetadata": "Labels and annotations of the Secret with the bootstrap data.",
    "File.path": "Absolute path of the file on the host, for example /etc/motd.",
    "File.content": "Content of the file. Set either this or contentFrom.",
    "File.contentFrom": "Takes the content from a Secret or ConfigMap. Set either this or content.",
    "File.permissions": "Mode of the file in octal form, for example 0640. Default: 0644.",
    "ContentSource.secretRef": "Secret and key that hold the content. Set either this or configMapRef.",
    "ContentSource.configMapRef": "ConfigMap and key that hold the content. Set either this or secretRef.",
    "ContentRef.name": "Name of the Secret or ConfigMap, in the namespace of the Cluster.",
    "ContentRef.key": "Key of the ConfigMap or Secret that holds the content, for example value.",
    # -- controllers -------------------------------------------------------------------------------------------------
    "k0s": "ClusterConfig of k0s (apiVersion k0s.k0sproject.io/v1beta1). Address, networks and load balancing of the "
    "Cluster's endpoint are filled in. A change reaches running controllers without a rollout.",
    "tunneling": "Reverse tunnel to the control plane. Not supported: enabled must be false.",
    "Tunneling.enabled": "Must be false: tunnels are not supported. Default: false.",
    "Tunneling.mode": "Mode of the tunnel: tunnel or proxy. Not used.",
    "Tunneling.serverAddress": "Address of the tunnel server. Not used.",
    "Tunneling.serverNodePort": "Port of the tunnel server. Not used.",
    "Tunneling.tunnelingNodePort": "Port of the tunneled API server. Not used.",
    "k0sConfigSpec": "How k0s is installed and configured on the machines. A change of anything but `k0s` replaces Machines.",
    "kubeconfigSecretMetadata": "Labels and annotations of the Secret with the kubeconfig of the cluster.",
    "machineTemplate": "How the Machines of the control plane are created.",
    "MachineTemplate.infrastructureRef": "Template of the virtual machines, for example a NutanixMachineTemplate. Point it at "
    "a new template to change Machines.",
    "nodeDrainTimeout": "How long draining a Node may take, for example 5m. 0 or left out: no limit.",
    "nodeVolumeDetachTimeout": "How long detaching the volumes of a Node may take, for example 5m. 0 or left out: no limit.",
    "nodeDeletionTimeout": "How long deleting the Node object may take, for example 10s. 0: no limit. Default: 10s.",
    "replicas": "Number of control plane Machines, odd because of etcd, for example 3. Default: 1.",
    "updateStrategy": "How a new version reaches the Machines. InPlace: k0s upgrades itself on each of them, one at a time. "
    "Recreate: each is replaced, a new one first. RecreateDeleteFirst: an old one is deleted first, which needs at least 3 "
    "replicas. Default: InPlace.",
    "K0sControlPlaneSpec.version": "Version of k0s, for example v1.33.4+k0s.0. Change it to upgrade, one minor version at a "
    "time. A version without a suffix means its first build, k0s.0.",
    "K0sControlPlaneTemplateResourceSpec.version": "Version of k0s. Default: the version of the Cluster.",
    # -- status ------------------------------------------------------------------------------------------------------
    "dataSecretName": "Name of the Secret, in the same namespace, that holds the bootstrap data.",
    "dataSecretCreated": "True from the moment that the bootstrap data was first available.",
    "ConfigStatus.ready": "True when the bootstrap data is available.",
    "ready": "True when the API server of the control plane answers requests.",
    "initialization": "Milestones that, once reached, stay reached.",
    "controlPlaneInitialized": "True from the moment that the control plane first answered requests.",
    "initialized": "True from the moment that the control plane first answered requests.",
    "externalManagedControlPlane": "Always false: the control plane runs on Machines of the cluster.",
    "selector": "Label selector of the Machines in string form. The scale subresource reads it.",
    "K0sControlPlaneStatus.replicas": "Number of control plane Machines that exist, deleting ones included.",
    "readyReplicas": "Number of Machines that are ready.",
    "availableReplicas": "Number of Machines that are available.",
    "upToDateReplicas": "Number of Machines that have the desired version and template.",
    "updatedReplicas": "Number of Machines that have the desired version and template.",
    "unavailableReplicas": "Number of Machines that are not available.",
    "K0sControlPlaneStatus.version": "Lowest version of k0s that a controller runs.",
}  # fmt: skip
