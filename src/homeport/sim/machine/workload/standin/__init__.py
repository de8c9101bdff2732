"""Stand-ins for add-ons: no image runs in simulated clusters, so these do what the users of known add-ons rely on.

A stand-in acts while Pods with the images of its project are ready, however they were installed.
"""
