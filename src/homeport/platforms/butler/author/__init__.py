"""What depends on who writes an object. Only the API server knows the author, so it checks: the embedded one with
hooks, another Kubernetes with ValidatingAdmissionPolicies, which are enforced while Homeport does not run."""
