"""Where the kinds are served that the simulated Harvester reads and writes."""

from __future__ import annotations

from typing import Any, Final

from homeport.api.meta import Resource

Json = dict[str, Any]

_HARVESTER = "harvesterhci.io"
_NETWORK = "network.harvesterhci.io"

VM: Final = Resource("kubevirt.io", "v1", "VirtualMachine", "virtualmachines")
VMI: Final = Resource("kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances")
MIGRATION: Final = Resource("kubevirt.io", "v1", "VirtualMachineInstanceMigration", "virtualmachineinstancemigrations")
DATA_VOLUME: Final = Resource("cdi.kubevirt.io", "v1beta1", "DataVolume", "datavolumes")
IMAGE: Final = Resource(_HARVESTER, "v1beta1", "VirtualMachineImage", "virtualmachineimages")
KEY_PAIR: Final = Resource(_HARVESTER, "v1beta1", "KeyPair", "keypairs")
SETTING: Final = Resource(_HARVESTER, "v1beta1", "Setting", "settings", namespaced=False)
NAD: Final = Resource("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions")
CLUSTER_NETWORK: Final = Resource(_NETWORK, "v1beta1", "ClusterNetwork", "clusternetworks", namespaced=False)
VLAN_CONFIG: Final = Resource(_NETWORK, "v1beta1", "VlanConfig", "vlanconfigs", namespaced=False)
LOAD_BALANCER: Final = Resource("loadbalancer.harvesterhci.io", "v1beta1", "LoadBalancer", "loadbalancers")
IP_POOL: Final = Resource("loadbalancer.harvesterhci.io", "v1beta1", "IPPool", "ippools", namespaced=False)
CLAIM: Final = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
VOLUME: Final = Resource("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
POD: Final = Resource("", "v1", "Pod", "pods")
NODE: Final = Resource("", "v1", "Node", "nodes", namespaced=False)
SECRET: Final = Resource("", "v1", "Secret", "secrets")
NAMESPACE: Final = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
CONFIG_MAP: Final = Resource("", "v1", "ConfigMap", "configmaps")
SERVICE: Final = Resource("", "v1", "Service", "services")
ENDPOINT_SLICE: Final = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
DEPLOYMENT: Final = Resource("apps", "v1", "Deployment", "deployments")
STORAGE_CLASS: Final = Resource("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)
DEFINITION: Final = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
