"""Land detector (PX4 v1.15 source, land_detector/MulticopterLandDetector).

Three stages, each held for a third of LNDMC_TRIG_TIME: ground contact (commanded down, little
thrust, no motion), perhaps landed (least thrust, no rotation), landed. There is no range finder,
so PX4's check of the distance to the ground does not apply.
"""

from __future__ import annotations

import math

from musls_control.px4_cascade.hysteresis import update_hysteresis
from musls_control.px4_cascade.position_control import GRAVITY_M_S2
from musls_description.compiled import compiled

DESCENT_SPEED_M_S = 0.3
FREEFALL_ACCELERATION_M_S2 = 2.0
FREEFALL_TIME_S = 0.3
#: Thresholds on motion are wider once the drone is perhaps landed.
LANDED_FACTOR = 2.5
HOVER_THRUST_MEMORY_S = 1.0


@compiled()
def note_hover_thrust(s, hover, p):
    """Remember the last valid hover thrust and for how long it has not been renewed."""
    if p.MPC_USE_HTE > 0.5 and hover.valid.state != 0:
        s.hover_throttle = hover.hover_thrust
        s.ticks_since_valid_hover = 0
    else:
        s.ticks_since_valid_hover += 1
    fresh = s.ticks_since_valid_hover * p.position_dt_s < HOVER_THRUST_MEMORY_S
    if s.in_descend == 0 or fresh:
        # An estimate lost on the way down is still trusted until the descent ends.
        s.hover_thrust_trusted = 1 if fresh else 0


@compiled()
def has_ground_contact(s, vehicle, thrust, descent_speed, p):
    """Tell whether an armed drone that is told to go down no longer moves."""
    factor = LANDED_FACTOR if s.maybe_landed.state != 0 else 1.0
    moves_z = abs(vehicle.velocity[2]) > p.LNDMC_Z_VEL_MAX * factor
    moves_xy = math.hypot(vehicle.velocity[0], vehicle.velocity[1]) > p.LNDMC_XY_VEL_MAX
    share = 0.6 if s.hover_thrust_trusted != 0 else 0.3
    low_thrust = thrust <= p.MPC_THR_MIN + (s.hover_throttle - p.MPC_THR_MIN) * share
    s.in_descend = 1 if descent_speed > DESCENT_SPEED_M_S else 0
    on_ground = s.maybe_landed.state != 0 or s.landed.state != 0
    return low_thrust and (s.in_descend != 0 or on_ground) and not moves_xy and not moves_z


@compiled()
def is_perhaps_landed(s, omega, thrust, p):
    """Tell whether an armed drone in ground contact idles without rotating."""
    if thrust > p.MPC_THR_MIN + (s.hover_throttle - p.MPC_THR_MIN) * 0.1:
        return False
    if s.freefall.state != 0:
        return False
    factor = LANDED_FACTOR if s.maybe_landed.state != 0 else 1.0
    if math.hypot(omega[0], omega[1]) > math.radians(p.LNDMC_ROT_MAX) * factor:
        return False
    return s.ground_contact.state != 0


@compiled()
def detect_landing(s, vehicle, omega, thrust, armed, descent_speed, hover, p):
    """Run the land detector for one step of position control."""
    note_hover_thrust(s, hover, p)
    dt, stage_time = p.position_dt_s, p.LNDMC_TRIG_TIME / 3.0
    ax, ay, az = vehicle.acceleration[0], vehicle.acceleration[1], vehicle.acceleration[2]
    az -= GRAVITY_M_S2
    falls = math.sqrt(ax * ax + ay * ay + az * az) < FREEFALL_ACCELERATION_M_S2
    update_hysteresis(s.freefall, 1 if falls else 0, FREEFALL_TIME_S, dt)
    contact = has_ground_contact(s, vehicle, thrust, descent_speed, p) or armed == 0
    update_hysteresis(s.ground_contact, 1 if contact else 0, stage_time, dt)
    perhaps = armed == 0 or is_perhaps_landed(s, omega, thrust, p)
    update_hysteresis(s.maybe_landed, 1 if perhaps else 0, stage_time, dt)
    landed = armed == 0 or s.maybe_landed.state != 0
    update_hysteresis(s.landed, 1 if landed else 0, stage_time, dt)
