"""The dashboard as a part of an installation: its objects and its certificates."""
