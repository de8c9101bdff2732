"""From symptom to cause: gathers what objects, consoles and workload clusters say, and checks it topic by topic."""
