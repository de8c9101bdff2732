"""What operators do to clusters that exist: heal a machine, upgrade."""
