"""Inextensible massless cables: taut or slack, with jerks between; event-driven integration."""
