"""musls_analysis: how well a flight went, real or simulated.

Internal: what users may rely on is in `musls` and its modules.
"""
