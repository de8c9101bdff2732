"""DataStore: where control planes keep their data."""
