"""Brings clusters that somebody else created with kubeadm under management, without changing what runs."""
