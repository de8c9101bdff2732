"""What hypervisors have that manifests can name, read with the credentials that the plane has."""
