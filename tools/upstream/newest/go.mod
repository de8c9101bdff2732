// The newest Cluster API, whose definitions our controllers are held against. Its managers are not built: the provider
// that ../go.mod pins is written for the release before.
module homeport.invalid/tools/upstream/newest

go 1.26.0

require sigs.k8s.io/cluster-api v1.14.2
