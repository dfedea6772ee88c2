"""musls_description: what a multi-UAV slung-load system is."""
