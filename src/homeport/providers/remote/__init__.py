"""Machines that exist already, reached over SSH: RemoteMachine, RemoteCluster and pools of machines."""
