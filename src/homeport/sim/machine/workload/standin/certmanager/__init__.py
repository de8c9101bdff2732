"""cert-manager: certificates in Secrets, signed by themselves or by an authority of the cluster."""
