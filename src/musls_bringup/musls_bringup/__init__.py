"""musls_bringup: how everything is started.

Internal: what users may rely on is in `musls` and its modules.
"""
