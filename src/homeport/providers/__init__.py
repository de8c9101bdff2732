"""Infrastructure providers, one folder each, blind to each other."""
