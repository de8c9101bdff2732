"""A client of etcd that needs nothing but a stream of bytes to a member: mutual TLS, HTTP/2 and gRPC in memory."""
