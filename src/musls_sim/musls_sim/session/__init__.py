"""The session: composes a simulation from a scenario and runs it, in the only flight loop."""
