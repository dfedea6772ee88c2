"""Stages of your own that are compiled into the control period; names of fields may change."""

from musls_description.numerics import vectors
from musls_description.numerics.compiled import CompiledStage, compiled
from musls_sim.session.compiled_stages import fields
from musls_sim.session.compiled_stages.world import world_at

__all__ = ["CompiledStage", "compiled", "fields", "vectors", "world_at"]
