"""The controllers: one module per kind. Each has `settle(key)`, which brings one object forward."""
