"""TenantControlPlane: a control plane of kube-apiserver, kube-controller-manager and kube-scheduler in Pods."""
