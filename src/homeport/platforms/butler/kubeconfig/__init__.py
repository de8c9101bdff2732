"""Kubeconfigs of tenant clusters for people: their own name, the role of their team, and a time at which they expire.

A person asks with a CertificateSigningRequest, whose creator the API server records; the key never leaves the person's
machine. What the certificate allows is RBAC in the tenant cluster: a member who leaves the team loses it at once.
"""

from __future__ import annotations

from homeport.platforms.butler.kubeconfig.reconciler import install

__all__ = ["install"]
