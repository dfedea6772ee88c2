"""musls_analysis: how well a flight went, real or simulated."""
