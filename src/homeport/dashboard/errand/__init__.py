"""Work for a page that takes long or needs much memory: done as the user, in a process of its own, with limits."""
