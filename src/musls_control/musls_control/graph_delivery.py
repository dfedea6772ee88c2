"""A delivery that flies in a ROS graph: measured motion in, gates and events out.

Logic of the `formation` node that is tested without ROS. Hooks open and close through the events of
whoever has them; that they have closed is heard as an event, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.delivery import compile_abort, delivery_of
from musls_control.delivery_watch import DeliveryWatch, slack_while_weighed_m
from musls_control.formation import Cone
from musls_control.gates import Gate
from musls_control.heard_motion import HeardMotion
from musls_control.mission import FlightPlan, GroundSpot
from musls_control.mission_spec import DeliverySpec, MissionSpec
from musls_description.rotations import rotate
from musls_description.system import SlungLoadSystem

Array = NDArray[np.float64]

LONGEST_STEP_S = 0.5
"""A longer gap between two samples is not weighed over."""


class GraphHooks:
    """Hooks behind a topic that takes events (see `Hooks`)."""

    def __init__(
        self,
        given: DeliverySpec,
        n_cables: int,
        send: Callable[[dict[str, Any]], None],
        tell: Callable[[str, str], None],
    ) -> None:
        """Connect.

        Args:
            given: How hooks close.
            n_cables: How many there are.
            send: Lets an event happen, given by its fields.
            tell: Told kind and text of what happened.
        """
        self._given, self._n_cables, self._send, self._tell = given, n_cables, send, tell
        self.closed = 0  # counts what the owner hears

    def open(self) -> None:
        """See `Hooks`."""
        self._send({"kind": "release"})

    def close(self) -> None:
        """See `Hooks`."""
        self.closed = 0
        for cable in range(1, self._n_cables + 1):
            self._send(
                {
                    "kind": "attach",
                    "cable": cable,
                    "distance_m": self._given.hook_distance_m,
                    "speed_m_s": self._given.hook_speed_m_s,
                }
            )

    def note(self, time_s: float, kind: str, what: str) -> None:
        """See `Hooks`."""
        self._tell(kind, what)


class GraphDelivery(HeardMotion):
    """Watches over a delivery with what was heard; makes the way back of one that failed.

    Attributes:
        watch: Its state.
    """

    def __init__(
        self, mission: MissionSpec, cone: Cone, system: SlungLoadSystem, gravity_m_s2: float
    ) -> None:
        """Prepare; `begin` before each flight.

        Args:
            mission: With `delivery`.
            cone: Formation.
            system: Drones, cables, load.
            gravity_m_s2: Gravity.
        """
        super().__init__(system.n_drones, system.n_rotors)
        self._mission, self._cone, self._system = mission, cone, system
        self._gravity_m_s2 = gravity_m_s2
        self._cruise_m, self._last_s, self._told = 0.0, -np.inf, False
        self._ground: GroundSpot
        self._hooks: GraphHooks
        self.watch: DeliveryWatch

    def begin(
        self,
        plan: FlightPlan,
        ground: GroundSpot,
        send: Callable[[dict[str, Any]], None],
        tell: Callable[[str, str], None],
    ) -> None:
        """Get ready for a flight; hooks that are to close later open now.

        Args:
            plan: What is flown.
            ground: Where load and drones stand.
            send: Lets an event happen, given by its fields.
            tell: Told kind and text of what happened.
        """
        given, mission = delivery_of(self._mission), self._mission
        self._told, self._last_s = False, -np.inf
        self._ground, self._cruise_m = ground, float(plan.load_pose[:, 2].max())
        self._hooks = GraphHooks(given, len(self._system.cables), send, tell)
        standing_m = float(ground.load_position_enu_m[2])
        slack_m = slack_while_weighed_m(given, standing_m, mission.slack_height_m)
        self.watch = DeliveryWatch(given, self._system, slack_m, self._gravity_m_s2, self._hooks)
        if given.pick_up == "hook":
            self._hooks.open()

    def weigh(self, time_s: float) -> None:
        """Weigh what hangs on the drones since the last time."""
        step_s, self._last_s = time_s - self._last_s, time_s
        if not 0.0 < step_s < LONGEST_STEP_S:
            return
        drones = self.estimate.drones
        up = rotate(drones.orientation_wxyz, np.array([0.0, 0.0, 1.0]))[:, 2]
        self.watch.scale.add(step_s, self.speeds_rad_s, up, drones.velocity_enu_m_s[:, 2])

    def on_event(self, kind: str) -> None:
        """Something has happened: a hook has closed, or the delivery is to be given up."""
        if kind == "attach":
            self._hooks.closed += 1
        elif kind == "abort":
            self.watch.abort("asked for")

    def tell_abort(self) -> None:
        """Say once that the delivery turns back, and why."""
        if self._told:
            return
        self._told = True
        why = self.watch.aborted or "asked for"
        self._hooks.note(0.0, "abort", f"{why}: {delivery_of(self._mission).abort}")

    @property
    def turns_back(self) -> bool:
        """See `DeliveryWatch.turns_back`."""
        return self.watch.turns_back

    def passes(self, gate: Gate, time_s: float) -> bool:
        """See `DeliveryWatch.passes`."""
        speed = float(np.linalg.norm(self.estimate.velocity_enu_m_s[0]))
        return self.watch.passes(gate, time_s, speed)

    def way_back(self, load_pose: Array) -> FlightPlan:
        """The rest of a delivery that is given up at a set-point of the load, (4,)."""
        return compile_abort(self._mission, self._cone, self._ground, load_pose, self._cruise_m)
