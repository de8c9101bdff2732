"""Kinds that create Pods, scale them or protect them."""
