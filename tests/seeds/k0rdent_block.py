"""The YAML blocks and commands of k0rdent's guide for Nutanix, character by character.

Some blocks are parts of a ClusterDeployment's values; `with_values` merges them. `docs/reference/k0rdent-coverage.md` has a
row for each of them.
"""

from __future__ import annotations

from typing import Any

import yaml

K01_HELM_KCM = r"""
helm install kcm oci://ghcr.io/k0rdent/kcm/charts/kcm --version 1.2.0 -n kcm-system --create-namespace \
  --set controller.enableTelemetry=false \
  --set velero.enabled=false
"""
K02_WAIT_KCM = """
kubectl wait --for=condition=Ready=True management/kcm --timeout=300s
"""
K03_HELM_CAPX = """
helm install nutanix-capx oci://ghcr.io/k0rdent-oot/oot/charts/nutanix-capx -n kcm-system --take-ownership
"""
K04_WAIT_CAPX = """
kubectl wait --for=condition=Ready=True management/kcm --timeout=300s
"""
K05_GLOBAL_CREDENTIALS = """
kubectl apply -f - <<EOF
---
apiVersion: v1
kind: Secret
metadata:
  name: nutanix-creds
  namespace: capx-system
  labels:
    cluster.x-k8s.io/provider: infrastructure-nutanix
stringData:
  credentials: |
    [
      {
        "type": "basic_auth",
        "data": {
          "prismCentral": {
            "username": "admin",
            "password": "your-pc-password"
          },
          "prismElements": null
        }
      }
    ]
EOF
"""
K06_CLUSTER_CREDENTIALS = """
kubectl apply -f - <<EOF
---
apiVersion: v1
kind: Secret
metadata:
  name: nutanix-cluster-creds
  namespace: kcm-system
  labels:
    cluster.x-k8s.io/provider: infrastructure-nutanix
stringData:
  credentials: |
    [
      {
        "type": "basic_auth", 
        "data": {
          "prismCentral": {
            "username": "cluster-admin",
            "password": "cluster-specific-password"
          },
          "prismElements": null
        }
      }
    ]
---
apiVersion: k0rdent.mirantis.com/v1beta1
kind: Credential
metadata:
  name: nutanix-cluster-identity-cred
  namespace: kcm-system
spec:
  description: Nutanix cluster credentials
  identityRef:
    apiVersion: v1
    kind: Secret
    name: nutanix-cluster-creds
    namespace: kcm-system
EOF
"""
K07_USE_CREDENTIALS = """
nutanix:
  prismCentral:
    usePerClusterCredential: true
    credentialSecretName: "nutanix-cluster-creds"
"""
K08_TRUST_BUNDLE = """
kubectl apply -f - <<EOF
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: nutanix-ca-bundle
  namespace: kcm-system
data:
  ca-bundle.crt: |
    -----BEGIN CERTIFICATE-----
    # Your custom CA certificate here
    -----END CERTIFICATE-----
EOF
"""
K09_USE_TRUST_BUNDLE = """
nutanix:
  prismCentral:
    additionalTrustBundleConfigMapName: "nutanix-ca-bundle"
"""
K10_HOSTED = """
kubectl apply -f - <<'EOF'
---
apiVersion: k0rdent.mirantis.com/v1beta1
kind: ClusterDeployment
metadata:
  name: nutanix-hcp-demo
  namespace: kcm-system
spec:
  template: nutanix-k0s-hcp
  credential: nutanix-cluster-identity-cred  # Only if using per-cluster credentials
  config:
    # Nutanix Infrastructure
    nutanix:
      prismCentral:
        address: "10.1.1.100"
        port: 9440
        insecure: false
        # Uncomment for per-cluster credentials
        # usePerClusterCredential: true
        # credentialSecretName: "nutanix-cluster-creds"
      controlPlaneEndpoint:
        host: "10.1.1.200"  # Static IP outside DHCP range
        port: 6443
    
    # Machine Configuration
    machineDefaults:
      image:
        type: name
        name: "ubuntu-22.04-k0s"
      cluster:
        type: name
        name: "PE-Cluster-01"
      subnets:
        - type: name
          name: "VM-Network"
      bootType: legacy
      vcpusPerSocket: 1
      vcpuSockets: 2
      memorySize: "4Gi" 
      systemDiskSize: "40Gi"
      # project: "k0s-project"
      # additionalCategories: ["k0s", "hcp"]
    
    # Worker-specific overrides
    worker:
      vcpuSockets: 2
      memorySize: "4Gi"
      systemDiskSize: "40Gi"
    
    # k0s Configuration
    k0s:
      version: "v1.29.2+k0s.0"
      worker:
        labels:
          node-role.kubernetes.io/worker: ""
        # taints: []
    
    # Cluster Configuration
    clusterNetwork:
      pods:
        cidrBlocks: ["10.243.0.0/16"]
      services:
        cidrBlocks: ["10.95.0.0/16"]
    
    # Scaling
    workersNumber: 2
EOF
"""
K11_STANDALONE = """
kubectl apply -f - <<'EOF'
---
apiVersion: k0rdent.mirantis.com/v1beta1
kind: ClusterDeployment
metadata:
  name: nutanix-standalone-demo
  namespace: kcm-system
spec:
  template: nutanix-k0s-standalone
  credential: nutanix-cluster-identity-cred  # Only if using per-cluster credentials
  config:
    # Nutanix Infrastructure 
    nutanix:
      prismCentral:
        address: "10.1.1.100"
        port: 9440
        insecure: false
        # Uncomment for per-cluster credentials
        # usePerClusterCredential: true
        # credentialSecretName: "nutanix-cluster-creds"
      controlPlaneEndpoint:
        host: "10.1.1.201"  # Static IP outside DHCP range
        port: 6443
    
    # Machine Configuration
    machineDefaults:
      image:
        type: name
        name: "ubuntu-22.04-k0s"
      cluster:
        type: name
        name: "PE-Cluster-01"
      subnets:
        - type: name
          name: "VM-Network"
      bootType: legacy
      vcpusPerSocket: 1
      vcpuSockets: 2
      memorySize: "4Gi"
      systemDiskSize: "40Gi"
      # project: "k0s-project"
      # additionalCategories: ["k0s", "standalone"]
    
    # Control plane specific overrides
    controlPlane:
      vcpuSockets: 4
      memorySize: "8Gi"
      systemDiskSize: "80Gi"
    
    # Worker specific overrides
    worker:
      vcpuSockets: 2
      memorySize: "4Gi"
      systemDiskSize: "40Gi"
    
    # k0s Configuration
    k0s:
      version: "v1.29.2+k0s.0"
      worker:
        labels:
          node-role.kubernetes.io/worker: ""
        # taints: []
    
    # Cluster Configuration
    clusterNetwork:
      pods:
        cidrBlocks: ["10.243.0.0/16"]
      services:
        cidrBlocks: ["10.95.0.0/16"]
    
    # Scaling
    controlPlaneNumber: 3
    workersNumber: 2
EOF
"""
K12_CLUSTER_STATUS = """
kubectl get cld -A
kubectl get cluster -A
clusterctl describe cluster nutanix-hcp-demo -n kcm-system
"""
K13_MACHINES = """
kubectl get machine -A
kubectl get nutanixmachine -A
"""
K14_CONTROL_PLANES = """
# For HCP mode
kubectl get k0smotroncontrolplane -A

# For standalone mode  
kubectl get k0scontrolplane -A
"""
K15_KUBECONFIGS = """
# For HCP cluster
clusterctl get kubeconfig nutanix-hcp-demo -n kcm-system > nutanix-hcp.kubeconfig

# For standalone cluster
clusterctl get kubeconfig nutanix-standalone-demo -n kcm-system > nutanix-standalone.kubeconfig
"""
K16_NODES = """
kubectl --kubeconfig=./nutanix-hcp.kubeconfig get nodes -o wide
kubectl --kubeconfig=./nutanix-standalone.kubeconfig get nodes -o wide
"""
K17_UUIDS = """
machineDefaults:
  image:
    type: uuid
    uuid: "550e8400-e29b-41d4-a716-446655440000"
  cluster:
    type: uuid
    uuid: "550e8400-e29b-41d4-a716-446655440001"
  subnets:
    - type: uuid
      uuid: "550e8400-e29b-41d4-a716-446655440002"
"""
K18_SUBNETS = """
machineDefaults:
  subnets:
    - type: name
      name: "Primary-Network"
    - type: name
      name: "Storage-Network"
"""
K19_PROJECT = """
machineDefaults:
  project: "k0s-production"
  additionalCategories:
    - "environment:production"
    - "workload:k0s"
    - "managed-by:k0rdent"
"""
K20_LABELS = """
k0s:
  worker:
    labels:
      node-role.kubernetes.io/worker: ""
      nutanix.com/cluster: "pe-cluster-01"
    taints:
      - key: "workload"
        value: "batch"
        effect: "NoSchedule"
"""
K21_CAPX_LOGS = """
kubectl logs -n capx-system deployment/capx-controller-manager
"""
K22_CAPI_LOGS = """
kubectl logs -n capi-system deployment/capi-controller-manager
"""
K23_K0SMOTRON_LOGS = """
kubectl logs -n k0smotron-system deployment/k0smotron-controller-manager
"""
K24_DESCRIBE_MACHINE = """
kubectl describe nutanixmachine <machine-name> -n kcm-system
"""
K25_DESCRIBE_CLUSTER = """
kubectl describe cluster <cluster-name> -n kcm-system
"""
K26_RESET = """
kubectl delete clusterdeployment <cluster-name> -n kcm-system
# Wait for cleanup, then redeploy
"""
K27_FINALIZERS = """
kubectl patch nutanixmachine <machine-name> -p '{"metadata":{"finalizers":null}}' --type=merge -n kcm-system
kubectl delete nutanixmachine <machine-name> -n kcm-system
"""
K28_EXTENSIONS = """
k0s:
  config:
    spec:
      extensions:
        helm:
          repositories:
            - name: nutanix
              url: https://nutanix.github.io/helm/
          charts:
            - name: nutanix-csi-storage
              chartname: nutanix/nutanix-csi-storage
              namespace: ntnx-system
              version: "3.0.0"
            - name: nutanix-cloud-controller-manager
              chartname: nutanix/nutanix-cloud-controller-manager  
              namespace: kube-system
              version: "0.3.0"
"""
K29_HELM_CHILD = """
helm repo add nutanix https://nutanix.github.io/helm/
helm install nutanix-csi nutanix/nutanix-csi-storage -n ntnx-system --create-namespace
helm install nutanix-ccm nutanix/nutanix-cloud-controller-manager -n kube-system
"""


def manifest(block: str) -> dict[str, Any]:
    """The object that the command of a block applies."""
    found: dict[str, Any] = yaml.safe_load(block.split("EOF", 1)[1].partition("\n")[2].rpartition("EOF")[0])
    return found


def with_values(block: str, name: str, host: str, *parts: str | dict[str, Any]) -> str:
    """A ClusterDeployment of the guide under another name and address, with blocks of the guide merged into its values."""
    body = manifest(block)
    body["metadata"]["name"] = name
    config = body["spec"]["config"]
    config["nutanix"]["controlPlaneEndpoint"]["host"] = host
    for part in parts:
        merge(config, yaml.safe_load(part) if isinstance(part, str) else part)
    return yaml.safe_dump(body)


def merge(into: dict[str, Any], part: dict[str, Any]) -> None:
    for key, value in part.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict) and "type" not in value:
            merge(into[key], value)
        else:
            into[key] = value
