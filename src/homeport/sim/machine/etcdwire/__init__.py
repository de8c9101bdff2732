"""etcd as its clients see it: gRPC over HTTP/2 over mutual TLS, at port 2379 of every control plane."""
