"""Management, Release, templates and chains, credentials: what clusters are made with."""
