//go:build managers

// Package managers names the programs that tools/upstream/build builds, so that go.mod keeps everything they need.
package managers

import (
	_ "github.com/nutanix-cloud-native/cluster-api-provider-nutanix"
	_ "sigs.k8s.io/cluster-api"
	_ "sigs.k8s.io/cluster-api/bootstrap/kubeadm"
	_ "sigs.k8s.io/cluster-api/controlplane/kubeadm"
)
