"""Fields of the Nutanix provider's kinds."""

from __future__ import annotations

from collections.abc import Mapping

_WAYS = "Write {type: name, name: NAME} or {type: uuid, uuid: UUID}."
_CHECKED = "Homeport checks it, and does not place machines by it."
_SIZE = "A quantity, for example 40Gi."

FIELDS: Mapping[str, str] = {
    # -- NutanixCluster --------------------------------------------------------------------------------------------
    "NutanixCluster.spec": "Desired state of the cluster's infrastructure: Prism Central, endpoint and failure domains.",
    "NutanixCluster.status": "Observed state of the cluster's infrastructure.",
    "ClusterSpec.controlPlaneEndpoint": "Virtual IP address and port of the cluster's API server. Choose a free address of "
    "the subnet, outside its DHCP pools.",
    "Endpoint.host": "IP address or host name of the API server, without scheme and port, for example 10.0.0.50.",
    "Endpoint.port": "Port of the API server. Default: 6443.",
    "ClusterSpec.prismCentral": "Prism Central that manages the cluster's VMs, and the credentials for it. Default: ConfigMap "
    "nutanix-endpoint or Secret nutanix-creds in the namespace capx-system.",
    "PrismCentral.address": "Host name or IP address of Prism Central, without scheme and port.",
    "PrismCentral.port": "Port of Prism Central. Default: 9440.",
    "PrismCentral.insecure": "True accepts any certificate of Prism Central. Use additionalTrustBundle instead in production. "
    "Default: false.",
    "PrismCentral.credentialRef": "Secret with the credentials for Prism Central. Default: nutanix-creds in the namespace "
    "capx-system.",
    "PrismCentral.additionalTrustBundle": "CA certificates that the certificate of Prism Central is checked with. Default: "
    "those of the system. An empty bundle counts as none.",
    "CredentialRef.kind": "Kind of the object with the credentials. Only Secret is supported.",
    "CredentialRef.name": "Name of the Secret. Its key credentials holds a JSON list with one entry of type basic_auth or "
    "api_key.",
    "CredentialRef.namespace": "Namespace of the Secret. Default: the namespace of the NutanixCluster.",
    "TrustBundle.kind": "Where the certificates are: String (in data) or ConfigMap (named by name).",
    "TrustBundle.data": "CA certificates in PEM format. Required with kind String.",
    "TrustBundle.name": "Name of a ConfigMap with the certificates under ca.crt or ca-bundle.crt. Required with kind "
    "ConfigMap.",
    "TrustBundle.namespace": "Namespace of the ConfigMap. Default: the namespace of the NutanixCluster.",
    "ClusterSpec.failureDomains": "Failure domains written into the cluster itself. Use NutanixFailureDomain objects and "
    "controlPlaneFailureDomains instead.",
    "InlineFailureDomain.name": "Name of the failure domain: lower-case letters, digits and hyphens, at most 64 characters.",
    "InlineFailureDomain.cluster": f"Prism Element cluster of the failure domain. {_WAYS}",
    "InlineFailureDomain.subnets": f"Subnets of the Prism Element cluster, at least one. {_WAYS}",
    "InlineFailureDomain.controlPlane": "True if control plane machines may be placed in the failure domain. Default: true.",
    "ClusterSpec.controlPlaneFailureDomains": "NutanixFailureDomains of the same namespace that control plane machines are "
    "spread over.",
    "LocalRef.name": "Name of the object, which is in the same namespace.",
    "ClusterStatus.failureDomains": "Failure domains that were found valid, for Cluster API to spread machines over.",
    "ClusterStatus.ready": "True when the infrastructure is ready for machines.",
    "initialization": "Milestones that, once reached, stay reached.",
    # -- NutanixMachine --------------------------------------------------------------------------------------------
    "NutanixMachine.spec": "Desired state of the VM: size, image, network and placement.",
    "NutanixMachine.status": "Observed state of the VM: its UUID, addresses and conditions.",
    "MachineSpec.providerID": "Identifier that the VM and its Node have in common, nutanix://UUID. Set automatically: what a "
    "template contains is ignored.",
    "MachineSpec.vcpusPerSocket": "Number of virtual CPUs per socket, at least 1.",
    "MachineSpec.vcpuSockets": "Number of CPU sockets, at least 1. The VM has vcpuSockets times vcpusPerSocket CPUs.",
    "MachineSpec.memorySize": "Memory of the VM, at least 2Gi. A quantity, for example 8Gi.",
    "MachineSpec.systemDiskSize": f"Size of the system disk, at least 20Gi and at least the size of the image. {_SIZE}",
    "MachineSpec.image": f"Disk image that the VM is created from. {_WAYS} Set either this or imageLookup.",
    "MachineSpec.imageLookup": "Finds the image by a name pattern that contains the Kubernetes version. Set either this or "
    "image.",
    "ImageLookup.baseOS": "Operating system in the name of the image, for example ubuntu-22.04.",
    "ImageLookup.format": "Go template of the image's name, with {{.BaseOS}} and {{.K8sVersion}} (without v). The newest "
    "image that matches is used. Default: capx-{{.BaseOS}}-{{.K8sVersion}}-*.",
    "MachineSpec.cluster": f"Prism Element cluster to place the VM on. {_WAYS} A failure domain replaces it.",
    "MachineSpec.subnet": f"Subnets to connect the VM to, one network card each, as a list. {_WAYS} A failure domain replaces "
    "them.",
    "MachineSpec.subnets": "Another spelling of subnet. Stored as subnet.",
    "MachineSpec.additionalCategories": "Categories to assign to the VM, in addition to those that mark the cluster. They "
    "must exist in Prism Central.",
    "MachineSpec.categories": "Another spelling of additionalCategories. Stored as additionalCategories.",
    "Category.key": "Key of the category in Prism Central, for example AppType.",
    "Category.value": "Value of the category in Prism Central, for example Kubernetes.",
    "MachineSpec.project": f"Project in Prism Central that the VM belongs to. {_WAYS} Default: none.",
    "MachineSpec.bootType": "Firmware of the VM: legacy (BIOS) or uefi. Default: legacy.",
    "MachineSpec.dataDisks": "Disks of the VM in addition to the system disk.",
    "DataDisk.diskSize": f"Size of the disk, at least 1Gi. {_SIZE}",
    "DataDisk.deviceProperties": "How the disk is attached to the VM. Default: the next free SCSI slot.",
    "DataDisk.storageConfig": "Where the disk is stored. Default: a storage container that Prism Element chooses.",
    "DataDisk.dataSource": f"Image that the disk is created from. {_WAYS} Default: an empty disk.",
    "DeviceProperties.deviceType": "Type of the device: Disk or CDRom. Default: Disk.",
    "DeviceProperties.adapterType": "Bus of the device: SCSI, PCI, SATA, IDE or SPAPR for disks, IDE or SATA for CD-ROMs.",
    "DeviceProperties.deviceIndex": "Slot on the bus, counted from 0. Default: the next free one.",
    "StorageConfig.diskMode": "Storage tier of the disk: Standard, or Flash to keep it on SSDs. Default: Standard.",
    "StorageConfig.storageContainer": f"Storage container for the disk. {_WAYS}",
    "MachineSpec.bootstrapRef": "Secret with the VM's user data. Set automatically.",
    "ObjectReference.name": "Name of the referenced object, for example harbour.",
    "MachineSpec.gpus": "GPUs to assign to the VM. They must be free on one host of the Prism Element cluster.",
    "Gpu.type": "How the GPU is named: name or deviceID.",
    "Gpu.name": "Name of the GPU in Prism Central, for example Tesla T4 compute. Required with type name.",
    "Gpu.deviceID": "Device ID of the GPU as a decimal number. Required with type deviceID.",
    "MachineSpec.addressesFromPools": "IP address pools for the network cards, in the order of the subnets. Cards without a "
    "pool get their address from the subnet.",
    "MachineStatus.ready": "True when the VM runs.",
    "MachineStatus.addresses": "Addresses of the VM, as Prism Central reports them.",
    "MachineStatus.vmUUID": "UUID of the VM in Prism Central.",
    "MachineStatus.nodeRef": "Node of the workload cluster that the VM became.",
    "MachineStatus.failureDomain": "Failure domain that the VM was placed in.",
    "MachineStatus.task": "Task of Prism Central that is in progress. It lets another replica of the controller continue.",
    "TaskRef.operation": "What the task does, for example create.",
    "TaskRef.id": "Identifier of the task in Prism Central.",
    # -- templates -------------------------------------------------------------------------------------------------
    "NutanixMachineTemplate.spec": "Template of the VMs of a control plane or MachineDeployment. Create a new template "
    "instead of changing one that is in use.",
    "NutanixMachineTemplate.status": "Capacity of VMs made from the template, and conditions.",
    "MachineTemplateSpec.template": "The NutanixMachine to create for each Machine.",
    "MachineTemplateResource.spec": "Desired state of each VM: size, image, network and placement.",
    "NutanixClusterTemplate.spec": "Template of the NutanixCluster of Clusters that use a ClusterClass.",
    "ClusterTemplateSpec.template": "The NutanixCluster to create for each Cluster.",
    "ClusterTemplateResource.spec": "Desired state of each cluster's infrastructure.",
    # -- failure domains and metro ---------------------------------------------------------------------------------
    "NutanixFailureDomain.spec": "Prism Element cluster and subnets of the failure domain.",
    "NutanixFailureDomain.status": "Conditions of the failure domain.",
    "FailureDomainSpec.prismElementCluster": f"Prism Element cluster of the failure domain. {_WAYS}",
    "FailureDomainSpec.subnets": f"Subnets of the Prism Element cluster, at least one, as a list. {_WAYS}",
    "NutanixMetro.spec": f"The two failure domains of the metro. {_CHECKED}",
    "NutanixMetro.status": "Conditions of the metro.",
    "MetroSpec.failureDomains": "Exactly two NutanixFailureDomains of the same namespace. They cannot be changed later.",
    "NutanixMetroSite.spec": f"Metro of the site, and the failure domain that its machines prefer. {_CHECKED}",
    "NutanixMetroSite.status": "Conditions of the site.",
    "MetroSiteSpec.preferredFailureDomain": "NutanixFailureDomain of the metro that machines are placed in while it works.",
    "MetroSiteSpec.metroRef": "NutanixMetro of the same namespace. It cannot be changed later.",
    "MetroSiteSpec.groupNameLabel": "Label key whose value on a machine names the movement group that it belongs to.",
    "NutanixVirtualHADomain.spec": f"Metro of the domain, and the groups of VMs that move together when one side fails. {_CHECKED}",
    "NutanixVirtualHADomain.status": "Whether the domain is ready, and conditions.",
    "VirtualHADomainSpec.metroRef": "NutanixMetro of the same namespace. It cannot be changed later.",
    "VirtualHADomainSpec.protectionPolicy": f"Protection policy of Prism Central that replicates the VMs. {_WAYS}",
    "VirtualHADomainSpec.movementGroups": "Groups of VMs that move together, each with one recovery plan per failure domain.",
    "VirtualHADomainStatus.ready": "True when the domain can be used. Homeport leaves it false.",
    "MovementGroup.name": "Name of the group: lower-case letters, digits and hyphens, at most 64 characters.",
    "MovementGroup.categoryRecoveryPlans": "Exactly two entries: one for each failure domain of the metro.",
    "CategoryRecoveryPlan.category": "Category that VMs of the group get in this failure domain.",
    "CategoryRecoveryPlan.recoveryPlan": f"Recovery plan of Prism Central for VMs with the category. {_WAYS}",
    "CategoryRecoveryPlan.failureDomainRef": "NutanixFailureDomain that the entry is about.",
}  # fmt: skip
