"""Templates that users bring: charts, or plain manifests, that become Helm releases of the plane."""
