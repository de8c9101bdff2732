"""The k0s bootstrap provider: the user data with which k0s makes a controller or a worker of it."""
