"""The YAML blocks of the document about the object model of Cluster API on Nutanix (O), as they are written there."""

O01_CLUSTER = """
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata:
  name: my-cluster
  namespace: default
spec:
  clusterNetwork:
    pods:
      cidrBlocks: ["192.168.0.0/16"]
    services:
      cidrBlocks: ["10.96.0.0/12"]
    serviceDomain: "cluster.local"
  
  # Reference to Infrastructure Provider (NutanixCluster)
  infrastructureRef:
    apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
    kind: NutanixCluster
    name: my-cluster
    namespace: default
  
  # Reference to Control Plane Provider
  controlPlaneRef:
    apiVersion: controlplane.cluster.x-k8s.io/v1beta1
    kind: KubeadmControlPlane
    name: my-cluster-control-plane
    namespace: default
  
  # Optional: Topology for ClusterClass-based clusters
  topology:
    class: my-cluster-class
    version: v1.28.0
    controlPlane:
      replicas: 3
    workers:
      machineDeployments:
        - class: default-worker
          name: md-0
          replicas: 3

status:
  phase: Provisioned
  infrastructureReady: true
  controlPlaneReady: true
  conditions:
    - type: Ready
      status: "True"
"""
O02_MACHINE = """
apiVersion: cluster.x-k8s.io/v1beta1
kind: Machine
metadata:
  name: my-cluster-worker-0
  namespace: default
  labels:
    cluster.x-k8s.io/cluster-name: my-cluster
  ownerReferences:
    - apiVersion: cluster.x-k8s.io/v1beta1
      kind: MachineSet
      name: my-cluster-md-0-abc123
spec:
  clusterName: my-cluster
  version: "v1.28.0"
  
  # Reference to Infrastructure Machine (NutanixMachine)
  infrastructureRef:
    apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
    kind: NutanixMachine
    name: my-cluster-worker-0
    namespace: default
  
  # Bootstrap configuration reference
  bootstrap:
    configRef:
      apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
      kind: KubeadmConfig
      name: my-cluster-worker-0
    dataSecretName: my-cluster-worker-0-bootstrap

status:
  phase: Running
  bootstrapReady: true
  infrastructureReady: true
  nodeRef:
    apiVersion: v1
    kind: Node
    name: my-cluster-worker-0
  addresses:
    - type: InternalIP
      address: 10.0.0.15
"""
O03_NUTANIX_CLUSTER = """
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: NutanixCluster
metadata:
  name: my-cluster
  namespace: default
  ownerReferences:
    - apiVersion: cluster.x-k8s.io/v1beta1
      kind: Cluster
      name: my-cluster
spec:
  # Control Plane endpoint (VIP or load balancer)
  controlPlaneEndpoint:
    host: "10.0.0.100"
    port: 6443
  
  # Prism Central connection configuration
  prismCentral:
    address: "prism-central.example.com"
    port: 9440
    insecure: false
    credentialRef:
      kind: Secret
      name: nutanix-credentials
      namespace: default
    additionalTrustBundle:
      kind: ConfigMap
      name: nutanix-trust-bundle
      namespace: default
  
  # Optional: Failure domains for HA
  failureDomains:
    - name: fd-1
      cluster:
        type: name
        name: "nutanix-cluster-1"
      subnets:
        - type: name
          name: "vm-network-1"

status:
  ready: true
  failureDomains:
    fd-1:
      controlPlane: true
      attributes:
        cluster: "nutanix-cluster-1"
  conditions:
    - type: Ready
      status: "True"
"""
O04_NUTANIX_MACHINE = """
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: NutanixMachine
metadata:
  name: my-cluster-worker-0
  namespace: default
  ownerReferences:
    - apiVersion: cluster.x-k8s.io/v1beta1
      kind: Machine
      name: my-cluster-worker-0
spec:
  # VM specifications
  vcpuSockets: 4
  vcpusPerSocket: 1
  memorySize: "8Gi"
  
  # Boot configuration
  bootType: legacy  # or uefi
  
  # System disk configuration
  systemDiskSize: "100Gi"
  
  # OS Image reference
  image:
    type: name
    name: "ubuntu-22.04-kube-v1.28.0"
    # Alternative: use UUID
    # type: uuid
    # uuid: "abc123-def456..."
  
  # Nutanix cluster (Prism Element) to deploy VM
  cluster:
    type: name
    name: "nutanix-cluster-1"
  
  # Network subnet configuration
  subnet:
    - type: name
      name: "vm-network"
  
  # Optional: Project for RBAC
  project:
    type: name
    name: "kubernetes-project"
  
  # Optional: Categories for organization/policy
  categories:
    - key: "Environment"
      value: "Production"
    - key: "Application"
      value: "Kubernetes"
  
  # Optional: GPU configuration
  gpus: []
  
  # Optional: Additional disks
  additionalCategories: []

status:
  ready: true
  vmUUID: "vm-uuid-12345"
  addresses:
    - type: InternalIP
      address: "10.0.0.15"
  conditions:
    - type: Ready
      status: "True"
"""
O05_NUTANIX_MACHINE_TEMPLATE = """
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: NutanixMachineTemplate
metadata:
  name: my-cluster-worker-template
  namespace: default
spec:
  template:
    spec:
      vcpuSockets: 4
      vcpusPerSocket: 1
      memorySize: "8Gi"
      bootType: legacy
      systemDiskSize: "100Gi"
      image:
        type: name
        name: "ubuntu-22.04-kube-v1.28.0"
      cluster:
        type: name
        name: "nutanix-cluster-1"
      subnet:
        - type: name
          name: "vm-network"
      project:
        type: name
        name: "kubernetes-project"
      categories:
        - key: "Environment"
          value: "Production"
"""
O06_COMPLETE = """
---
# Cluster (Core CAPI)
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata:
  name: my-nutanix-cluster
  namespace: default
spec:
  clusterNetwork:
    pods:
      cidrBlocks: ["192.168.0.0/16"]
    services:
      cidrBlocks: ["10.96.0.0/12"]
    serviceDomain: cluster.local
  infrastructureRef:
    apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
    kind: NutanixCluster
    name: my-nutanix-cluster
  controlPlaneRef:
    apiVersion: controlplane.cluster.x-k8s.io/v1beta1
    kind: KubeadmControlPlane
    name: my-nutanix-cluster-kcp
---
# NutanixCluster (Infrastructure Provider)
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: NutanixCluster
metadata:
  name: my-nutanix-cluster
  namespace: default
spec:
  controlPlaneEndpoint:
    host: "10.0.0.100"
    port: 6443
  prismCentral:
    address: "prism-central.example.com"
    port: 9440
    insecure: false
    credentialRef:
      kind: Secret
      name: nutanix-credentials
---
# KubeadmControlPlane (Control Plane Provider)
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlane
metadata:
  name: my-nutanix-cluster-kcp
  namespace: default
spec:
  replicas: 3
  version: v1.28.0
  machineTemplate:
    infrastructureRef:
      apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
      kind: NutanixMachineTemplate
      name: my-nutanix-cluster-cp-mt
  kubeadmConfigSpec:
    clusterConfiguration:
      apiServer:
        extraArgs:
          cloud-provider: external
      controllerManager:
        extraArgs:
          cloud-provider: external
    initConfiguration:
      nodeRegistration:
        kubeletExtraArgs:
          cloud-provider: external
    joinConfiguration:
      nodeRegistration:
        kubeletExtraArgs:
          cloud-provider: external
---
# NutanixMachineTemplate for Control Plane
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: NutanixMachineTemplate
metadata:
  name: my-nutanix-cluster-cp-mt
  namespace: default
spec:
  template:
    spec:
      vcpuSockets: 4
      vcpusPerSocket: 1
      memorySize: "8Gi"
      systemDiskSize: "100Gi"
      bootType: legacy
      image:
        type: name
        name: "ubuntu-22.04-kube-v1.28.0"
      cluster:
        type: name
        name: "nutanix-cluster-1"
      subnet:
        - type: name
          name: "vm-network"
---
# MachineDeployment for Workers
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata:
  name: my-nutanix-cluster-md-0
  namespace: default
spec:
  clusterName: my-nutanix-cluster
  replicas: 3
  selector:
    matchLabels: {}
  template:
    spec:
      clusterName: my-nutanix-cluster
      version: v1.28.0
      bootstrap:
        configRef:
          apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
          kind: KubeadmConfigTemplate
          name: my-nutanix-cluster-md-0-kt
      infrastructureRef:
        apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
        kind: NutanixMachineTemplate
        name: my-nutanix-cluster-worker-mt
---
# NutanixMachineTemplate for Workers
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: NutanixMachineTemplate
metadata:
  name: my-nutanix-cluster-worker-mt
  namespace: default
spec:
  template:
    spec:
      vcpuSockets: 4
      vcpusPerSocket: 1
      memorySize: "16Gi"
      systemDiskSize: "100Gi"
      bootType: legacy
      image:
        type: name
        name: "ubuntu-22.04-kube-v1.28.0"
      cluster:
        type: name
        name: "nutanix-cluster-1"
      subnet:
        - type: name
          name: "vm-network"
---
# KubeadmConfigTemplate for Workers
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata:
  name: my-nutanix-cluster-md-0-kt
  namespace: default
spec:
  template:
    spec:
      joinConfiguration:
        nodeRegistration:
          kubeletExtraArgs:
            cloud-provider: external
---
# Nutanix Credentials Secret
apiVersion: v1
kind: Secret
metadata:
  name: nutanix-credentials
  namespace: default
type: Opaque
stringData:
  credentials: |
    [
      {
        "type": "basic_auth",
        "data": {
          "prismCentral": {
            "username": "admin",
            "password": "your-password"
          }
        }
      }
    ]
"""
