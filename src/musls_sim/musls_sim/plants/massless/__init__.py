"""Inextensible massless cables: taut or slack, with impacts between; event-driven integration."""
