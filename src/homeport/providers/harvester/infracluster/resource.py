"""Kinds of the infrastructure cluster, and the names that its objects carry."""

from __future__ import annotations

from homeport.api.meta import Resource

VM = Resource("kubevirt.io", "v1", "VirtualMachine", "virtualmachines")
VMI = Resource("kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances")
DATA_VOLUME = Resource("cdi.kubevirt.io", "v1beta1", "DataVolume", "datavolumes")
IMAGE = Resource("harvesterhci.io", "v1beta1", "VirtualMachineImage", "virtualmachineimages")
KEY_PAIR = Resource("harvesterhci.io", "v1beta1", "KeyPair", "keypairs")
SETTING = Resource("harvesterhci.io", "v1beta1", "Setting", "settings", namespaced=False)
NETWORK = Resource("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions")
LOAD_BALANCER = Resource("loadbalancer.harvesterhci.io", "v1beta1", "LoadBalancer", "loadbalancers")
IP_POOL = Resource("loadbalancer.harvesterhci.io", "v1beta1", "IPPool", "ippools", namespaced=False)
CLAIM = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
SECRET = Resource("", "v1", "Secret", "secrets")
SERVICE = Resource("", "v1", "Service", "services")
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
POD = Resource("", "v1", "Pod", "pods")
NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
STORAGE_CLASS = Resource("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)

# Labels on everything that is made for a machine. The first two are upstream's, the UIDs tell whose it really is.
MACHINE_NAME = "capk.cluster.x-k8s.io/kubevirt-machine-name"
MACHINE_NAMESPACE = "capk.cluster.x-k8s.io/kubevirt-machine-namespace"
MACHINE_UID = "infrastructure.homeport.dev/machine-uid"
CLUSTER_UID = "infrastructure.homeport.dev/cluster-uid"
SERVICE_UID = "ccm.homeport.dev/service-uid"  # on load balancers: of a Service of the workload cluster
ROLE = "cluster.x-k8s.io/role"
VM_NAME = "kubevirt.io/vm"
HARVESTER_VM_NAME = "harvesterhci.io/vmName"
CREATOR = "harvesterhci.io/creator"
# A label with which users ask for the replacement of a machine.
TERMINAL = "capk.cluster.x-k8s.io/vm-is-terminal"
# An annotation of VMs whose user data has the user of the bootstrap check.
BOOTSTRAP_CHECK = "infrastructure.homeport.dev/bootstrap-check"

# Annotations of Harvester.
CLAIM_TEMPLATES = "harvesterhci.io/volumeClaimTemplates"
IMAGE_ID = "harvesterhci.io/imageId"
SSH_NAMES = "harvesterhci.io/sshNames"
DISK_NAMES = "harvesterhci.io/diskNames"

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
