"""Control planes of k0s that run as Pods, in the API of k0smotron."""
