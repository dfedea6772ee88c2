from musls import control, events, plants, recordings, stages, types
from musls import learning as learning
from musls_bringup.api.recording import Recording, compare, read_recording, replay
from musls_bringup.api.simulation import InvalidFlightWarning, fly, linearise, symbolic
from musls_bringup.api.studies import montecarlo, sweep
from musls_bringup.catalogue.scenarios import load_scenario
from musls_bringup.catalogue.shipped import VERSION as __version__
from musls_bringup.design.study import design
from musls_bringup.flight.verify import verify
from musls_control.agents.agent import EVERYBODY, Agent
from musls_control.controllers import CONTROLLERS as controllers
from musls_control.controllers import Controller, ControlLevel, ControlSetup
from musls_control.estimate import Estimate
from musls_control.estimators import LOAD_ESTIMATORS as load_estimators
from musls_control.estimators import LoadEstimator, LoadImuSpec
from musls_control.reference import LoadReference
from musls_control.trajectories import TRAJECTORIES as trajectories
from musls_control.trajectories import Trajectory
from musls_description.config.deprecation import MuslsDeprecationWarning
from musls_description.config.errors import ConfigError, MuslsError
from musls_description.config.registry import UserCodeError
from musls_description.config.schema import spec
from musls_description.numerics import rotations
from musls_description.system.cable_law import CABLE_LAWS as cable_laws
from musls_description.system.cable_law import CableLaw
from musls_description.system.drone import Drone
from musls_description.system.slung_system import Cable, Load
from musls_description.system.slung_system import SlungLoadSystem as System
from musls_description.system.system_files import load_system
from musls_sim.batch.batch import Batch
from musls_sim.plants.interface import SimulationDiverged
from musls_sim.scenario.aerodynamics import AERODYNAMICS as aerodynamics
from musls_sim.scenario.aerodynamics import AerodynamicModel
from musls_sim.scenario.events import Event
from musls_sim.scenario.scenario import Scenario
from musls_sim.sensors.custom import SENSORS as sensors
from musls_sim.sensors.custom import SensorModel
from musls_sim.session.loop import Observer
from musls_sim.session.session import Session

__all__ = [
    "EVERYBODY",
    "AerodynamicModel",
    "Agent",
    "Batch",
    "Cable",
    "CableLaw",
    "ConfigError",
    "ControlLevel",
    "ControlSetup",
    "Controller",
    "Drone",
    "Estimate",
    "Event",
    "InvalidFlightWarning",
    "Load",
    "LoadEstimator",
    "LoadImuSpec",
    "LoadReference",
    "MuslsDeprecationWarning",
    "MuslsError",
    "Observer",
    "Recording",
    "Scenario",
    "SensorModel",
    "Session",
    "SimulationDiverged",
    "System",
    "Trajectory",
    "UserCodeError",
    "__version__",
    "aerodynamics",
    "cable_laws",
    "compare",
    "control",
    "controllers",
    "design",
    "events",
    "fly",
    "linearise",
    "load_estimators",
    "load_scenario",
    "load_system",
    "montecarlo",
    "plants",
    "read_recording",
    "recordings",
    "replay",
    "rotations",
    "sensors",
    "spec",
    "stages",
    "sweep",
    "symbolic",
    "trajectories",
    "types",
    "verify",
]
