"""musls_bringup: how everything is started."""
