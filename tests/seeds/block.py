"""The YAML blocks and commands of Butler's guides, character by character.

N: its guide for Nutanix, H: for Harvester, P: its page of providers. Some blocks are parts of an object; `complete` puts
them into the smallest one. `docs/reference/butler-coverage.md` has a row for each of them.
"""

from __future__ import annotations

N01_TALOS_IMAGE = """
# Download Talos Nutanix image
curl -LO https://github.com/siderolabs/talos/releases/download/v1.9.0/nutanix-amd64.qcow2
"""
N02_ROCKY_IMAGE = """
curl -LO https://dl.rockylinux.org/pub/rocky/9/images/x86_64/Rocky-9-GenericCloud.latest.x86_64.qcow2
"""
N03_SECRET = r"""
kubectl create secret generic nutanix-credentials \
  --from-literal=NUTANIX_USER=admin \
  --from-literal=NUTANIX_PASSWORD='your-password' \
  --from-literal=NUTANIX_ENDPOINT='prism-central.example.com' \
  --from-literal=NUTANIX_PORT='9440' \
  --from-literal=NUTANIX_INSECURE='false' \
  -n butler-system
"""
N04_PROVIDER_CONFIG = """
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ProviderConfig
metadata:
  name: nutanix-prod
  namespace: butler-system
spec:
  type: nutanix
  nutanix:
    credentialsRef:
      name: nutanix-credentials
    prismCentral:
      address: prism-central.example.com
      port: 9440
      insecure: false
    cluster:
      name: cluster-01
      # Or use UUID:
      # uuid: "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
    subnet:
      name: workload-subnet
      # Or use UUID:
      # uuid: "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
    image:
      name: talos-1.9
"""
N05_BUTLER_CONFIG = """
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ButlerConfig
metadata:
  name: butler
spec:
  defaultProviderConfigRef:
    name: nutanix-prod
"""
N06_ENDPOINT = """
# In ClusterBootstrap for management cluster
spec:
  cluster:
    controlPlaneEndpoint: 10.127.14.29
"""
N07_POOL = """
# ButlerConfig or per-cluster
spec:
  platform:
    metalLBPool: "10.127.14.30-10.127.14.50"
"""
N08_WORKERS = """
spec:
  workers:
    replicas: 3
    machineTemplate:
      cpu: 8
      memory: 16Gi
      disk: 100Gi
"""
N09_LIST_CLUSTERS = r"""
# Test Prism Central API
curl -k -u admin:password https://prism-central.example.com:9440/api/nutanix/v3/clusters/list \
  -H "Content-Type: application/json" \
  -d '{"length": 10}'
"""
N10_GET_SECRET = """
kubectl get secret nutanix-credentials -n butler-system -o yaml
"""
N11_LOGS = """
kubectl logs -n capx-system deploy/capx-controller-manager -f
"""
N12_MACHINES = """
kubectl get nutanixmachine -A
kubectl describe nutanixmachine <n> -n <namespace>
"""
N13_LIST_SUBNETS = r"""
# Via API
curl -k -u admin:password https://prism-central.example.com:9440/api/nutanix/v3/subnets/list \
  -H "Content-Type: application/json" \
  -d '{"length": 100}'
"""
N14_LIST_IMAGES = r"""
# Via API
curl -k -u admin:password https://prism-central.example.com:9440/api/nutanix/v3/images/list \
  -H "Content-Type: application/json" \
  -d '{"length": 100}'
"""
N15_INSECURE = """
spec:
  nutanix:
    prismCentral:
      insecure: true  # For testing only
"""

H01_NETWORK = """
# Example VLAN network
Name: workloads
Namespace: default
VLAN ID: 40
Cluster Network: mgmt
"""
H02_TALOS_IMAGE = """
# Download Talos KubeVirt image
curl -LO https://github.com/siderolabs/talos/releases/download/v1.9.0/nocloud-amd64.raw.xz
xz -d nocloud-amd64.raw.xz
"""
H03_ROCKY_IMAGE = """
curl -LO https://dl.rockylinux.org/pub/rocky/9/images/x86_64/Rocky-9-GenericCloud.latest.x86_64.qcow2
"""
H04_KEY = """
# Generate key pair (if needed)
ssh-keygen -t ed25519 -f ~/.ssh/butler-ssh -N ""
"""
H05_NODE_KUBECONFIG = """
# From Harvester node
cat /etc/rancher/rke2/rke2.yaml
"""
H06_SECRET = r"""
kubectl create secret generic harvester-kubeconfig \
  --from-file=kubeconfig=harvester-kubeconfig.yaml \
  -n butler-system
"""
H07_PROVIDER_CONFIG = """
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ProviderConfig
metadata:
  name: harvester-prod
  namespace: butler-system
spec:
  type: harvester
  harvester:
    credentialsRef:
      name: harvester-kubeconfig
      key: kubeconfig
    namespace: default
    networkName: default/workloads
    imageName: default/talos-1.9
    storageClassName: harvester-longhorn
"""
H08_BUTLER_CONFIG = """
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ButlerConfig
metadata:
  name: butler
spec:
  defaultProviderConfigRef:
    name: harvester-prod
"""
H09_POOL = """
# In TenantCluster spec
spec:
  addons:
    loadBalancer:
      provider: metallb
      addressPool: "10.40.1.0-10.40.1.50"
"""
H10_WORKERS = """
spec:
  workers:
    replicas: 3
    machineTemplate:
      cpu: 8
      memory: 16Gi
      diskSize: 100Gi
"""
H11_LOGS = """
kubectl logs -n harvester-system deploy/harvester-harvester -f
"""
H12_MACHINES = """
kubectl get virtualmachine -A
kubectl describe virtualmachine <name> -n <namespace>
"""
H13_SSH = """
# SSH to Rocky Linux worker
ssh -i ~/.ssh/butler-ssh rocky@<vm-ip>
ping <gateway-ip>
ping <api-server-ip>
"""
H14_IMAGES = """
kubectl get virtualmachineimage -n default
"""
H15_IMAGE = """
kubectl describe virtualmachineimage <name> -n default
"""
H16_NODES = """
kubectl --kubeconfig=harvester-kubeconfig.yaml get nodes
"""
H17_LOGS = """
kubectl logs -n butler-system deploy/butler-provider-harvester -f
"""
H18_REQUEST = """
kubectl describe machinerequest <name> -n <namespace>
"""

P01_CLUSTER = """
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: TenantCluster
metadata:
  name: my-cluster
spec:
  providerConfigRef:
    name: harvester-prod  # References a ProviderConfig
"""
P02_PROVIDER_CONFIG = """
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ProviderConfig
metadata:
  name: harvester-prod
spec:
  type: harvester
  harvester:
    credentialsRef:
      name: harvester-kubeconfig
      namespace: butler-system
    namespace: default
    networkName: default/workloads
    imageName: default/talos-1.9
"""


def complete(kind: str, name: str, part: str, namespace: str = "") -> str:
    """The smallest object that has this part."""
    space = f"  namespace: {namespace}\n" if namespace else ""
    return (
        f"apiVersion: butler.butlerlabs.dev/v1alpha1\nkind: {kind}\nmetadata:\n  name: {name}\n{space}{part.lstrip()}"
    )


def filled(command: str, **values: str) -> str:
    """With the names that the guide leaves to its reader."""
    for name, value in values.items():
        command = command.replace(f"<{name}>", value)
    return command
