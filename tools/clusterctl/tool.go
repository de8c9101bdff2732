//go:build tools

// Package clusterctl names what tools/clusterctl/build builds, so that go.mod keeps everything that it needs.
package clusterctl

import _ "sigs.k8s.io/cluster-api/cmd/clusterctl/cmd"
