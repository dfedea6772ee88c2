"""Gains of the payload controller from a linear model of load, cables, drones and delays.

Along a horizontal axis a load of mass m hangs on a length l below drones of mass M in all. With
its place x over l, theta = (x_drone - x_load) / l, c = g / l, the force F that the drones add to
hover and a push d on the load,

    x'' = c theta + d / (m l),    theta'' + (c + b) theta = F / (M l) - d / (m l),    b = c m / M.

The law (`cable_law`) commands, from the load's error with C(s) = k_p + k_d s,

    F = H(s) e^(-s T) M l [b theta - k_q theta - k_w s theta - (k_q + c) C(s) x / c]:

H is the answer of the drones' thrust direction to its command (rotors, rate and attitude loop, and
the lead of the commands), T the delay of estimate and set-points. Cut at F, the loop is

    L = H e^(-s T) [(k_q - b) s^2 + k_w s^3 + (k_q + c) C(s)] / (s^2 (s^2 + c + b)).

Drones that move against each other while the load rests have the loop

    L_s = H e^(-s T) [(k_q - b) + k_w s] / (s^2 + b).

Drones that hold their places (`places`) hold a load on cables that spread like struts. Then l is
no length: c and b are those of the load below drones that hold their places, along the axis in
which it goes aside most, and along the one in which it does least; the law is the same in places as
in directions, X and Y = X + l theta, and one set of gains serves both axes.

Yaw is the same chain, with the stiffness K of the yaw at rest in formation, the load's inertia J,
radii r and R of attachments and drones, c = K / J, b = K / (M R^2). The law does not count on the
load's angular acceleration there, and the measured rate of the cables has a part of the load's:

    L = H e^(-s T) [(k_q - b) s^2 + k_w (s^3 + (1 - r / R) c s) + k_q C(s)] / (s^2 (s^2 + c + b)).

L is linear in the gains, so that two complex pairs of poles p, a slow one of the load and one of
the swing, are placed exactly, delay and all, by the four real equations 1 + L(p) = 0. A grid of
pairs is tried at once. Those count that are stable (the phase of (1 + L) s^2 (s^2 + c + b) grows by
a quarter for each of its zeros), whose loops keep the `Demand`, and whose drones accelerate by no
more than `MOST_EFFORT` g for an error of one length, and likewise for its rate. Squared frequencies
scale with c, so a system and its likeness of another size get the same gains but for the delays,
which do not scale. Among them the best answer to a push is taken: with the `observer` of bandwidth
K, whose estimate and its derivative the law brings to bear as theta_d = -d^ / (m g), the

    least integral |x|^2 c / w^2 + q |theta|^2 + r |x_v|^2 dw

for an impulse d: of x, that is, for a push that lasts (|x|^2 for the yaw, whose moments nobody
observes). x_v is the error after a jump of the reference's velocity, which moves load and drones
alike and is no push.

Where none keeps the demand a looser one is taken, down to a quarter of it, and the margins say so.

Height, roll and pitch of the load need no turning of drones: a double integrator behind the lag of
the rotors and the delay, with gains w^2 and 2 w.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from musls_control.controllers.payload.observer import DAMPING, GROWTH_SHARE
from musls_description.numerics.arrays import Array

Complex = NDArray[np.complex128]

Response = Callable[[Complex], Complex]
"""Answer at complex frequencies [rad/s]."""

SLOW_DAMPING = np.array([0.65, 0.95])
SLOW = np.geomspace(0.06, 1.5, 12)
"""Damping ratios of the slow pair, and its natural frequencies over the smaller one of the swing's
and half the inverse of the lag."""

SWING = np.array([0.7, 0.85, 0.95, 1.05, 1.15, 1.3, 1.5, 2.0, 3.0])
SWING_DAMPING = np.array([0.04, 0.08, 0.15, 0.25, 0.35, 0.45, 0.6, 0.8])
"""Natural frequencies of the placed swing over that of the free one, and damping ratios."""

YAW_STIFFNESS = np.hstack([np.geomspace(0.01, 0.5, 8), np.linspace(0.6, 1.4, 17), [2.0, 3.0]])
YAW_DAMPING = np.array([0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5])
"""Gains of the yaw that are tried: over the stiffness at rest, and as damping ratios. A stiffness
of (1 - b / k_q) c takes out what the cables feel of a load that turns below drones at rest: of a
load with little inertia, whose turning is faster than drones, no other one keeps a margin."""

MOST_EFFORT = 1.0
MOST_RATE_EFFORT = 2.0
"""Largest acceleration of the drones, over g, for an error of the load of one cable length, and for
an error of its velocity of one length in a time 1 / sqrt(c)."""

MOST = 100.0
"""Margins beyond it are shown as this, a factor or seconds."""

SWING_WEIGHT = 0.2
JUMP_WEIGHT = 0.5
"""Weights q of the cables' deflection after a push, and r of the error after a jump."""

OBSERVER_SHARE = 2.0
OBSERVER_LAG = 0.6
"""Bandwidth of the observer of a push over the root of c, and at most this over the lag."""

LOOSER = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.25)
"""Shares of the demanded margins that are tried one after the other."""

FREQUENCIES = 120
NEARBY = np.geomspace(0.005, 0.3, 12)
"""Number of frequencies at which the loops are evaluated, and of more beside that of the free
swing, as shares of it: there the loops' sizes are largest."""

LIFT_SHARE = 0.15
TILT_SHARE = 0.25
"""Natural frequency of height, and of roll and pitch, times lag of the rotors and delay: a phase
margin of 59, and of 47 degrees."""


@dataclass(frozen=True)
class Margins:
    """Margins of a loop.

    Attributes:
        gain_up: Factor by which the gain may grow until the loop is unstable.
        gain_down: Factor by which it may shrink.
        phase_deg: Phase that may be lost.
        delay_s: Further delay that may come.
        distance: Least distance of the frequency response from -1.
    """

    gain_up: float
    gain_down: float
    phase_deg: float
    delay_s: float
    distance: float

    @property
    def numbers(self) -> dict[str, float]:
        """Smaller gain margin, phase and delay margin; at most `MOST` of what has no end."""
        return {
            "gain_margin": min(self.gain_up, self.gain_down, MOST),
            "phase_margin_deg": self.phase_deg,
            "delay_margin_ms": 1e3 * min(self.delay_s, MOST),
        }


@dataclass(frozen=True)
class Demand:
    """Margins that a loop must have.

    Attributes:
        gain: Factor by which the gain may grow or shrink.
        phase_deg: Phase that may be lost.
        distance: Distance of the frequency response from -1.
        delays: Further delay, over the present one.
    """

    gain: float
    phase_deg: float
    distance: float
    delays: float

    def kept_by(self, margins: Array, delay_s: float, share: float) -> Array:
        """Whether k loops keep a share (0 to 1) of these margins, (k,) bool.

        `margins`, (5, k): factors of the gain up and down, phase [deg], further delay [s], distance
        from -1; `delay_s` is the present delay.
        """
        up, down, phase, delay, distance = margins
        gain = 1.0 + share * (self.gain - 1.0)
        kept = (np.minimum(up, down) >= gain) & (phase >= share * self.phase_deg)
        kept &= delay >= share * self.delays * delay_s
        return np.asarray(kept & (distance >= share * self.distance))


TRACKING = Demand(2.0, 40.0, 0.5, 1.0)
SPREADING = Demand(1.6, 25.0, 0.35, 1.0)
"""Margins of the load's loops, and of drones against each other, which little excites."""


@dataclass(frozen=True)
class Hanging:
    """A load below its drones, along one axis.

    Attributes:
        load_1_s2: Acceleration of the load per deflection of the cables, c.
        drone_1_s2: Acceleration of the drones per deflection, b.
        counted: Whether the law counts on the acceleration that is asked of the load.
        rate_share: Share of the load's own rate in that of the cables, 1 - r / R for the yaw.
    """

    load_1_s2: float
    drone_1_s2: float
    counted: bool = True
    rate_share: float = 0.0

    @property
    def swing_1_s2(self) -> float:
        """Squared frequency of the free swing."""
        return self.load_1_s2 + self.drone_1_s2

    def through(self, direction_1_s2: Array) -> Array:
        """Acceleration of the drones for one that is asked of the load, in these units."""
        return np.asarray(direction_1_s2 + self.load_1_s2 * self.counted)


@dataclass(frozen=True)
class Actuator:
    """Answer of the drones' horizontal force to its command.

    Attributes:
        turn: Answer of the thrust's direction, H.
        delay_s: Delay of estimate and set-points, T.
    """

    turn: Response
    delay_s: float

    def __call__(self, s: Complex) -> Complex:
        """Answer at complex frequencies."""
        return np.asarray(self.turn(s) * np.exp(-self.delay_s * s))

    @property
    def turn_s(self) -> float:
        """Time by which slow turns are late."""
        return float(-np.angle(self.turn(np.array([1e-2j])))[0] / 1e-2)

    @property
    def lag_s(self) -> float:
        """Time by which slow commands are late in all."""
        return self.turn_s + self.delay_s


@dataclass(frozen=True)
class LoopGains:
    """Gains of a load's axis.

    Attributes:
        direction_1_s2: k_q.
        rate_1_s: k_w.
        position_1_s2: k_p.
        velocity_1_s: k_d.
        load: Margins of the load's loop.
        spread: Margins of drones against each other; None for one drone.
        share: Share of the demand that is kept, see `LOOSER`; 0 for none of them.
    """

    direction_1_s2: float
    rate_1_s: float
    position_1_s2: float
    velocity_1_s: float
    load: Margins
    spread: Margins | None
    share: float


def horizontal_gains(hangs: Hanging, actuator: Actuator, *, alone: bool) -> LoopGains:
    """Gains of the cables' directions and the load's horizontal motion; `alone`: of one drone."""
    gains = _candidates(hangs, actuator)
    observer_1_s = observer_rate_1_s(hangs, actuator)
    return _best(gains, (hangs,), actuator, None if alone else SPREADING, observer_1_s)


def _candidates(hangs: Hanging, actuator: Actuator) -> Array:
    """Gains that place the poles of the grid, (4, k)."""
    free = np.sqrt(hangs.swing_1_s2)
    axes = SLOW * min(free, 0.5 / actuator.lag_s), SLOW_DAMPING, free * SWING, SWING_DAMPING
    slow, firm, swing, damping = map(np.ravel, np.meshgrid(*axes))
    pairs = np.stack([_pole(slow, firm), _pole(swing, damping)], axis=1)
    gains = _placed(pairs, hangs, actuator)
    fits = (gains[1:] > 0.0).all(axis=0) & (gains[0] > -0.7 * hangs.drone_1_s2)
    fits &= gains[2] <= MOST_EFFORT * hangs.load_1_s2**2
    fits &= gains[3] <= MOST_RATE_EFFORT * hangs.load_1_s2**1.5
    return np.asarray(gains[:, fits])


def place_gains(axes: tuple[Hanging, Hanging], actuator: Actuator, *, alone: bool) -> LoopGains:
    """Gains of a load that goes aside along its softest and its stiffest axis, see `places`."""
    gains = _candidates(axes[0], actuator)
    observer_1_s = observer_rate_1_s(axes[0], actuator)
    return _best(gains, axes, actuator, None if alone else SPREADING, observer_1_s)


def yaw_gains(hangs: Hanging, actuator: Actuator, cables: LoopGains) -> LoopGains:
    """Gains of the load's yaw with cables that have their gains already."""
    stiffness, damping = map(np.ravel, np.meshgrid(YAW_STIFFNESS * hangs.load_1_s2, YAW_DAMPING))
    rate = 2.0 * damping * np.sqrt(stiffness)
    direction = np.full(stiffness.shape, cables.direction_1_s2)
    through = hangs.through(direction)
    swing = np.full(stiffness.shape, cables.rate_1_s)
    gains = np.stack([direction - hangs.drone_1_s2, swing, through * stiffness, through * rate])
    return _best(gains, (hangs,), actuator, None, 0.0)


def _pole(frequency: Array, damping: Array | float) -> Complex:
    return np.asarray(frequency * (-damping + 1j * np.sqrt(1.0 - np.square(damping))))


def _placed(pairs: Complex, hangs: Hanging, actuator: Actuator) -> Array:
    """Gains k_q - b, k_w and both of C times k_q + c that place pairs of poles, (4, k)."""
    rows = np.stack([pairs**2, pairs**3, np.ones_like(pairs), pairs], axis=-1)
    wanted = -(pairs**4 + hangs.swing_1_s2 * pairs**2) / actuator(pairs)
    matrix = np.concatenate([rows.real, rows.imag], axis=1)
    sides = np.concatenate([wanted.real, wanted.imag], axis=1)
    return np.asarray(np.linalg.solve(matrix, sides[..., None])[..., 0].T)


def observer_rate_1_s(hangs: Hanging, actuator: Actuator) -> float:
    """Bandwidth K of the observer of the push on the load."""
    return float(min(OBSERVER_SHARE * np.sqrt(hangs.load_1_s2), OBSERVER_LAG / actuator.lag_s))


def observed(s: Complex, rate_1_s: float) -> Complex:
    """Answer of an `observer` of some bandwidth to a push."""
    frequency = 2.0 * DAMPING * rate_1_s
    return np.asarray(frequency**2 / (s**2 + 2.0 * DAMPING * frequency * s + frequency**2))


def _best(
    gains: Array,
    axes: Sequence[Hanging],
    actuator: Actuator,
    against: Demand | None,
    observer_1_s: float,
) -> LoopGains:
    """The gains with the best answer to a push among those that keep the demand along all axes.

    Gains are those of the first axis.
    """
    hangs = axes[0]
    loops = [_Loops(gains, hangs, axis, actuator, observer_1_s) for axis in axes]
    stable = np.all([loop.stable for loop in loops], axis=0)
    cost = np.sum([loop.cost for loop in loops], axis=0)
    if against is not None:
        stable &= np.all([loop.spread_stable for loop in loops], axis=0)
    keeps = stable
    share = 0.0
    for share in LOOSER:
        keeps = stable.copy()
        for loop in loops:
            keeps &= TRACKING.kept_by(loop.margins, actuator.delay_s, share)
            if against is not None:
                keeps &= against.kept_by(loop.spread, actuator.delay_s, share)
        if keeps.any():
            break
    else:
        share = 0.0
        keeps = stable
    best = int(np.argmin(np.where(keeps, cost, np.inf)))
    least = np.array([loop.margins[:, best] for loop in loops]).min(axis=0)
    spread = np.array([loop.spread[:, best] for loop in loops]).min(axis=0)
    direction = gains[0, best] + hangs.drone_1_s2
    through = hangs.through(direction)
    return LoopGains(
        float(direction),
        float(gains[1, best]),
        float(gains[2, best] / through),
        float(gains[3, best] / through),
        Margins(*map(float, least)),
        None if against is None else Margins(*map(float, spread)),
        share,
    )


class _Loops:
    """Loops with all candidates of gains along one axis.

    Attributes:
        stable: Whether the load's loop is stable, (k,).
        spread_stable: Whether that of drones against each other is, (k,).
        margins: Margins of the load's loop, (5, k).
        spread: Margins of drones against each other, (5, k).
        cost: Cost of the answer to a push, (k,).
    """

    def __init__(
        self,
        gains: Array,
        of: Hanging,
        hangs: Hanging,
        actuator: Actuator,
        observer_1_s: float,
    ) -> None:
        free = np.sqrt(hangs.swing_1_s2)
        slowest = min(free, 1.0 / actuator.lag_s)
        fastest = max(2.0 * free, 4.0 / actuator.lag_s)
        wide = np.geomspace(0.03 * slowest, 5.0 * fastest, FREQUENCIES)
        frequency = np.sort(np.hstack([wide, free * (1.0 - NEARBY), free * (1.0 + NEARBY)]))
        s = 1j * frequency
        (stiff, rate, slow, fast) = gains[:, :, None]
        # Of errors of the load an axis takes what its cables do with the drones' motion.
        slow, fast = [gain * hangs.load_1_s2 / of.load_1_s2 for gain in (slow, fast)]
        answer = actuator(s)
        alone = s**2 * (s**2 + hangs.swing_1_s2)
        own = stiff + rate * s
        turned = rate * hangs.rate_share * hangs.load_1_s2 * s
        fed = answer * (own * s**2 + turned + slow + fast * s)
        seen = np.zeros(1)
        if observer_1_s > 0.0:
            growth = s / (1.0 + s / (GROWTH_SHARE * observer_1_s))
            seen = answer * (stiff + hangs.drone_1_s2 + rate * growth) * observed(s, observer_1_s)
        moved = (s**2 + hangs.drone_1_s2 + answer * own - seen) / (alone + fed)
        held = (slow + fast * s + s**2 * seen / answer) / hangs.load_1_s2
        deflected = (s**2 + answer * held) / (alone + fed)
        lasts = hangs.load_1_s2 / frequency**2 if observer_1_s > 0.0 else 1.0
        jumped = (s**2 + hangs.swing_1_s2 + answer * own) / (alone + fed)
        cost = lasts * np.abs(moved) ** 2 + SWING_WEIGHT * np.abs(deflected) ** 2
        cost += JUMP_WEIGHT * np.abs(jumped) ** 2
        self.cost = np.trapezoid(cost, frequency, axis=1)
        self.stable = _zeros(alone + fed) == 4
        self.margins = _margins(fed / alone, frequency)
        rests = s**2 + hangs.drone_1_s2
        self.spread_stable = _zeros(rests + answer * own) == 2
        self.spread = _margins(answer * own / rests, frequency)


def _zeros(values: Complex) -> Array:
    """Zeros in the left half plane less those in the right one, from the phase along the axis."""
    phase = np.angle(values[:, 1:] / values[:, :-1]).sum(axis=1)
    return np.asarray(np.rint(phase / (0.5 * np.pi)))


def _margins(loop: Complex, frequency: Array) -> Array:
    """Margins of loops from their frequency responses, (5, k) in the order of `Margins`."""
    size = np.abs(loop)
    phase = np.mod(np.angle(loop) + np.pi, 2.0 * np.pi)
    crosses = (size[:, 1:] - 1.0) * (size[:, :-1] - 1.0) < 0.0
    late = phase[:, 1:]
    either = np.degrees(np.minimum(late, 2.0 * np.pi - late))
    real = (loop.imag[:, 1:] * loop.imag[:, :-1] < 0.0) & (loop.real[:, 1:] < 0.0)
    size = size[:, 1:]
    return np.array(
        [
            np.where(real & (size < 1.0), 1.0 / np.maximum(size, 1e-12), np.inf).min(axis=1),
            np.where(real & (size > 1.0), size, np.inf).min(axis=1),
            np.where(crosses, either, 180.0).min(axis=1),
            np.where(crosses, late / frequency[1:], np.inf).min(axis=1),
            np.abs(1.0 + loop).min(axis=1),
        ]
    )
