"""AccessManagement: copies of objects of kcm-system for other namespaces."""
