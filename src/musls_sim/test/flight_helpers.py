"""Sessions that write a bag, as `musls fly` makes them, and a way to look at them in flight."""

from musls_sim.recording import BagRecorder
from musls_sim.session.loop import Observer
from musls_sim.session.session import Session


def session_with_bag(scenario, bag, **options):
    """Make a session whose flight goes into the bag `bag`, at the scenario's rates."""
    session = Session(scenario, **options)
    rates = scenario.recording
    recorder = BagRecorder(
        bag,
        scenario.system,
        rate_hz=rates.rate_hz,
        shape_rate_hz=rates.shape_rate_hz,
        step_period_s=session.plant.period_s,
    )
    session.observe_with(recorder)
    return session


class Look(Observer):
    """Calls a function with time and session in every n-th control period."""

    def __init__(self, function, every=1):
        self._function, self.every = function, every

    def observe(self, time_s, loop):
        self._function(time_s, loop)
