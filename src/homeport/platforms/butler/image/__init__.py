"""ImageSyncs: images that are brought to a provider."""
