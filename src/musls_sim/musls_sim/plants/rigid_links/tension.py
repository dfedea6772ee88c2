"""Forces in the cables from the forces that the joints transmit in the dynamics."""

from __future__ import annotations

from musls_description.compiled import compiled


@compiled()
def cable_forces(end_wrench, motion, wrench, first_links, drones, force, peak):
    """Turn joint reactions into cable forces in the frames of the end links.

    DART sees the outside forces as torques in the joints above, so what it reports as transmitted
    by a joint still holds the outside force on everything beyond that joint: it is taken off here.

    Args:
        end_wrench: DART's body force of the first link (in its frame) and of the drone (in its
            frame) in the step from `motion`: moment, force, (n, 2, 6).
        motion: From `body_motion`, before the step, (n_bodies, 24).
        wrench: Outside wrench on each body and all beyond it, world, (n_bodies, 6).
        first_links: Body index of each cable's first link, (n,).
        drones: Body index of each drone; its last link is the body before, (n,).
        force: Result, x along the link towards the drone is tension, (n, 2, 3).
        peak: Largest tension so far, raised in place, (n,).
    """
    for i in range(drones.shape[0]):
        for end in range(2):
            body = drones[i] if end else first_links[i]
            link = motion[drones[i] - 1] if end else motion[body]
            m, f, w = motion[body], end_wrench[i, end], wrench[body]
            # What the part of the cable below exerts on the body, world frame. It pulls backwards
            # along the link with the tension.
            fx = m[0] * f[3] + m[1] * f[4] + m[2] * f[5] - w[0]
            fy = m[3] * f[3] + m[4] * f[4] + m[5] * f[5] - w[1]
            fz = m[6] * f[3] + m[7] * f[4] + m[8] * f[5] - w[2]
            for k in range(3):
                force[i, end, k] = -(link[k] * fx + link[3 + k] * fy + link[6 + k] * fz)
            peak[i] = max(peak[i], force[i, end, 0])
