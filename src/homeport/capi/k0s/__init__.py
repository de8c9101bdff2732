"""k0s, as the providers of its control planes and machines share it: versions, tokens, kinds, configuration."""
