"""Fields of the KubeVirt provider's kinds."""

from __future__ import annotations

from collections.abc import Mapping

_SIZE = "A quantity, for example 40Gi."
_KEYS = "Its key kubeconfig holds a kubeconfig; the optional key namespace replaces the namespace of the kubeconfig's context."
_NAMED = "Write NAMESPACE/NAME, or NAME for the namespace of the VM."

FIELDS: Mapping[str, str] = {
    # -- KubevirtCluster -------------------------------------------------------------------------------------------
    "KubevirtCluster.spec": "Desired state of the cluster's infrastructure: where the VMs run, and the endpoint.",
    "KubevirtCluster.status": "Observed state of the cluster's infrastructure.",
    "ClusterSpec.controlPlaneEndpoint": "Address and port of the cluster's API server. Choose a free address of the VM "
    "network, outside its DHCP range. Leave it out with controlPlaneServiceTemplate or controlPlaneLoadBalancer.",
    "Endpoint.host": "IP address or host name of the API server, without scheme and port, for example 10.40.0.200.",
    "Endpoint.port": "Port of the API server. Default: 6443.",
    "ClusterSpec.controlPlaneServiceTemplate": "Creates a Service in the infrastructure cluster, in front of the control "
    "plane's VMs. For VMs on the Pod network. Its address becomes the endpoint if controlPlaneEndpoint.host is empty.",
    "ServiceTemplate.metadata": "Labels, annotations and namespace of the Service. Default of the namespace: that of the VMs.",
    "ServiceTemplate.spec": "Settings of the Service.",
    "ServiceSpec.type": "Type of the Service: ClusterIP, NodePort or LoadBalancer. Default: ClusterIP.",
    "ClusterSpec.controlPlaneLoadBalancer": "Creates a Harvester LoadBalancer in front of the control plane's VMs. Its "
    "address becomes the endpoint.",
    "LoadBalancer.ipam": "Where the address comes from: pool or dhcp. Default: pool.",
    "LoadBalancer.ipPool": "Name of the Harvester IPPool. Default: the pool that Harvester selects.",
    "ClusterSpec.infraClusterSecretRef": f"Secret of the Harvester or KubeVirt cluster in which the VMs run. {_KEYS} "
    "Default: the cluster that Homeport itself runs in.",
    "ClusterSpec.sshKeys": "SSH key pair with which Homeport asks VMs whether their bootstrap has succeeded (see "
    "checkStrategy of KubevirtMachines). For keys of people see keyPairs. Default: Homeport creates a key pair.",
    "SSHKeys.configRef": "Object with the SSH keys. Not read.",
    "SSHKeys.dataSecretName": "Name of a Secret with the key pair, in the same namespace: keys pub and key, in the form "
    "of OpenSSH. Default: the name of the KubevirtCluster and -ssh-keys, which Homeport creates.",
    "ObjectReference.name": "Name of the Secret, for example harbour-credentials.",
    "ObjectReference.namespace": "Namespace of the Secret. Default: the namespace of the object that refers to it.",
    "ClusterStatus.failureDomains": "Zones of the infrastructure cluster's Nodes, for Cluster API to spread machines over.",
    "FailureDomain.controlPlane": "True if control plane machines may be placed in the zone.",
    "FailureDomain.attributes": "Label of the Nodes that the zone was read from, as topologyKey.",
    "ClusterStatus.ready": "True when the infrastructure is ready for machines.",
    "initialization": "Milestones that, once reached, stay reached.",
    # -- KubevirtMachine -------------------------------------------------------------------------------------------
    "KubevirtMachine.spec": "Desired state of the VM: its KubeVirt template, disks and keys.",
    "KubevirtMachine.status": "Observed state of the VM: its addresses and conditions.",
    "MachineSpec.providerID": "Identifier that the VM and its Node have in common: harvester://UID or kubevirt://UID, with "
    "the UID of the VirtualMachine. Set automatically: what a template contains is ignored.",
    "MachineSpec.virtualMachineTemplate": "KubeVirt VirtualMachine to create. CPUs, memory, networks and placement are set "
    "here. Homeport adds the disks, the user data and missing devices.",
    "VirtualMachineTemplate.metadata": "Labels, annotations and namespace of the VirtualMachine. Default of the namespace: "
    "that of the infrastructure cluster's Secret. The annotation harvesterhci.io/volumeClaimTemplates is read.",
    "VirtualMachineTemplate.spec": "Spec of the VirtualMachine, as KubeVirt defines it. Default of runStrategy: Always.",
    "MachineSpec.virtualMachineBootstrapCheck": "How Homeport learns that the VM became a Node.",
    "BootstrapCheck.checkStrategy": "How the bootstrap is checked: none, or ssh. With ssh, the machine is "
    "provisioned once the file /run/cluster-api/bootstrap-success.complete exists on the VM, which Homeport reads over "
    "SSH, or once its Node has joined. Default: ssh.",
    "MachineSpec.infraClusterSecretRef": f"Secret of the Harvester or KubeVirt cluster in which the VM runs. {_KEYS} "
    "Default: that of the KubevirtCluster, which is copied here so that the VM can still be deleted without it.",
    "MachineSpec.bootDisk": "Boot disk that is created from a Harvester image. Leave it out if virtualMachineTemplate has "
    "a boot volume of its own.",
    "BootDisk.image": f"VirtualMachineImage, by object name or display name, for example default/rocky-9-cloud. {_NAMED}",
    "BootDisk.size": f"Size of the disk. {_SIZE} Default: the virtual size of the image, at least 10Gi.",
    "MachineSpec.dataDisks": "Empty disks of the VM in addition to the boot disk.",
    "DataDisk.name": "Name of the disk, unique in the VM: lower-case letters, digits and hyphens, at most 20 characters.",
    "DataDisk.size": f"Size of the disk. {_SIZE}",
    "DataDisk.storageClassName": "StorageClass of the disk, for example harvester-longhorn. Default: the default class.",
    "MachineSpec.keyPairs": "Harvester KeyPairs whose public keys may log in to the VM as its default user. "
    f"{_NAMED} Only for cloud-config user data.",
    "MachineSpec.userDataSource": "How the VM gets its user data: NoCloud or ConfigDrive. Default: NoCloud on Harvester, "
    "ConfigDrive for images whose name or URL contains openstack, and on KubeVirt without Harvester.",
    "MachineSpec.addressesFromPools": "IP address pools for the networks of the VM, in their order. Networks without a pool "
    "use DHCP.",
    "MachineStatus.ready": "True when the VM runs.",
    "MachineStatus.addresses": "Addresses of the VM, as its guest agent reports them or as a pool assigned them.",
    "MachineStatus.failureDomain": "Failure domain that the VM was placed in.",
    "MachineStatus.loadBalancerConfigured": "Not used. Kept for objects of the upstream provider.",
    "MachineStatus.nodeupdated": "True when the Node of the VM has the provider ID.",
    # -- templates -------------------------------------------------------------------------------------------------
    "KubevirtMachineTemplate.spec": "Template of the VMs of a control plane or MachineDeployment. Create a new template "
    "instead of changing one that is in use.",
    "KubevirtMachineTemplate.status": "Capacity of VMs made from the template, and conditions.",
    "MachineTemplateSpec.template": "The KubevirtMachine to create for each Machine.",
    "MachineTemplateResource.spec": "Desired state of each VM: its KubeVirt template, disks and keys.",
    "KubevirtClusterTemplate.spec": "Template of the KubevirtCluster of Clusters that use a ClusterClass.",
    "ClusterTemplateSpec.template": "The KubevirtCluster to create for each Cluster.",
    "ClusterTemplateResource.spec": "Desired state of each cluster's infrastructure.",
}  # fmt: skip
