"""Charts of add-ons: where they come from, and their releases."""
