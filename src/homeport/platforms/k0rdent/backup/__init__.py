"""ManagementBackup: backups of the plane, once or on a schedule."""
