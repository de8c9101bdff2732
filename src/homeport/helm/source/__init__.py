"""Where charts come from: OCI registries, HTTP repositories, folders and archives on disk."""
