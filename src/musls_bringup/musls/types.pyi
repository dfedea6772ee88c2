from musls_analysis.comparison.compare import CompareOptions, StageComparison
from musls_analysis.comparison.errors import ErrorTable
from musls_analysis.linear import LinearModel, Mode
from musls_analysis.replay.replay import ReplayResult
from musls_analysis.sweep.montecarlo import MonteCarlo
from musls_bringup.design.answer import Answer, Choice
from musls_bringup.flight.verify import Convergence
from musls_control.estimate import BodyMotion
from musls_description.config.schema import (
    Edges,
    FileName,
    Finite,
    Fraction,
    Matrix3,
    NonNegative,
    Number,
    PerAxis,
    Positive,
    Quaternion,
    Vector3,
)
from musls_description.hanging.hang import Hanging
from musls_description.system.slung_system import RigSystem
from musls_sim.plants.massless.symbolic import SymbolicSystem
from musls_sim.scenario.aerodynamics import Air
from musls_sim.sensors.custom import SensorSetup
from musls_sim.session.flight import Flight

__all__ = [
    "Air",
    "Answer",
    "BodyMotion",
    "Choice",
    "CompareOptions",
    "Convergence",
    "Edges",
    "ErrorTable",
    "FileName",
    "Finite",
    "Flight",
    "Fraction",
    "Hanging",
    "LinearModel",
    "Matrix3",
    "Mode",
    "MonteCarlo",
    "NonNegative",
    "Number",
    "PerAxis",
    "Positive",
    "Quaternion",
    "ReplayResult",
    "RigSystem",
    "SensorSetup",
    "StageComparison",
    "SymbolicSystem",
    "Vector3",
]
