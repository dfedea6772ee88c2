"""Configuration: YAML text and overrides, specifications, registries, user code, errors."""
