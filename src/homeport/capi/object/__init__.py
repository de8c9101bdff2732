"""What all controllers do with objects: owners, pausing, conditions, templates, names."""
