"""Control planes that run as Pods: one engine, and the kinds of Steward, Kamaji and k0smotron in front of it."""
