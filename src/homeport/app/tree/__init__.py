"""The objects of one cluster as a tree, from the platform's object down to the Nodes."""
