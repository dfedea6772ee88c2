"""Columns of the tables of the massless cables."""

X, Q, V, W = 0, 3, 7, 10
"""State of a body: position (3), quaternion wxyz (4), velocity (3), body rate in its frame (3)."""

STATE = 13

MASS, INVERSE_MASS, INERTIA, INVERSE, DRAG = 0, 1, 2, 11, 20
"""Constants of a body: mass, 1 / mass (0 if prescribed), inertia and its inverse (9), drag (3)."""

STIFFNESS, DAMPING, RADIUS, FIRST_CORNER, CORNERS = 23, 24, 25, 26, 27
"""Contact of a corner; radius of all, first and number of the corners."""

FREE, NEAR = 28, 29
"""1 if not prescribed; 1 if the ground is within reach."""

BODY = 30

LENGTH, POINT_LOAD, POINT_DRONE = 0, 1, 4
"""Constants of a cable: length, its end on the load and on the drone (body frames, 3)."""

TAUT, TENSION, GAP, RATE, FREE_ACCELERATION, ALONG = 7, 8, 9, 10, 11, 12
"""1 if taut; tension; distance of the ends over the length (d - l), its rate, its second derivative
without tensions; direction from load to drone (3)."""

LOAD_ARM, LOAD_TURN, DRONE_TURN = 15, 18, 21
"""Moment of a unit tension about the load's centre, load frame (3); angular acceleration that it
gives to load and drone, body frames (3, 3)."""

OWN = 24
"""Effect of a unit tension on the cable's own distance through its drone [1/kg]."""

PEAK, MIDDLE, THRESHOLD = 25, 26, 27
"""Largest tension in the period; least one in the middle of the step; gap that is an event."""

GAP_BEGIN, RATE_BEGIN, GAP_LOW, GAP_HIGH, FORCE_SUM = 28, 29, 30, 31, 32
"""Gap and rate at the begin of the step; event function at the ends of a bracket; impulse of the
cable on the load within the period (3) [N s]."""

BEFORE, VALUE, FORCE_BEGIN = 35, 36, 37
"""Whether the cable was taut before it was decided anew; its event function after a trial; its
force on the load at the begin of the step (3)."""

LOAD_SPIN, DRONE_SPIN = 40, 41
"""Squared frequency per tension with which load and drone can turn about the cable's ends."""

CABLE = 42

PLACE, ANCHOR, STUCK, PUSH = 0, 3, 5, 6
"""A corner: place in the body (3), where it stuck (2), whether it sticks, last force (3)."""

CORNER = 9

GRAVITY, GROUND, FRICTION, RESTITUTION, STEP, CONTACT_STEP, TENSION_NOISE = 0, 1, 2, 3, 4, 5, 6
"""Parameters: ground NaN for none, steps in the air and on the ground, tension that counts as 0."""

PARAMETERS = 7

WORK, LOSS, ABSOLUTE_WORK, JERK_LOSS, REFINED = 0, 1, 2, 3, 4
"""Sums: work of rotors, inputs and prescribed drones, losses to air and ground, absolute work,
energy lost in jerks, and whether the last period was refined."""

SUMS = 5

EVENT_TIME, EVENT_KIND, EVENT_CABLE, EVENT_IMPULSE, EVENT_LOSS = 0, 1, 2, 3, 4
"""An event: time since the begin of the period, kind, cable from 0, impulse and energy lost."""

SLACKENED, TIGHTENED, JERKED = 0, 1, 2
"""Kinds: a cable went slack, a slack one taut; a taut one was jerked by the others' jerk."""

EVENT, MOST_EVENTS = 5, 512
