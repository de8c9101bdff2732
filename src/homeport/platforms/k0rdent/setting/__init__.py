"""Settings of API servers that several clusters share: authentication and audit policies."""
