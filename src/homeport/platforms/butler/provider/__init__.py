"""ProviderConfigs: what a user's infrastructure is, probed at the provider."""
