"""steward.butlerlabs.dev: control planes that run as Pods, and where their data is kept."""
