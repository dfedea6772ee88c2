"""Constants of nature."""

STANDARD_GRAVITY_M_S2 = 9.80665
"""Standard gravity, by definition (3rd CGPM, 1901) [m/s2]."""
