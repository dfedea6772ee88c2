"""How a PX4 that is flown from a ROS graph is told to join it, by its uXRCE-DDS client."""

from __future__ import annotations

from dataclasses import dataclass

from musls_control.offboard.topics import px4_namespace, target_system

LOOPBACK_ONLY = 1


@dataclass(frozen=True)
class DdsLink:
    """The client's end of the link to an agent on this machine.

    Names count drones, not PX4 instances: drone i is `px4_i` with system id i + 1 in its graph,
    whichever instances of PX4 were free. The DDS domain is that of ROS_DOMAIN_ID.

    Attributes:
        port: UDP port of the agent.
    """

    port: int

    def variables(self, index: int) -> dict[str, str]:
        """Environment of a drone's PX4 (from 0), read by its start-up script."""
        return {
            "PX4_UXRCE_DDS_PORT": str(self.port),
            "PX4_UXRCE_DDS_NS": px4_namespace(index + 1),
        }

    def parameters(self, index: int) -> dict[str, float]:
        """Parameters of a drone's PX4 (from 0).

        Without UXRCE_DDS_SYNCT stamps are PX4's clock, which is /clock. UXRCE_DDS_PTCFG 1 is
        loopback only: ROS nodes with ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST hear no other.
        """
        return {
            "MAV_SYS_ID": self.system_id(index),
            "UXRCE_DDS_SYNCT": 0,
            "UXRCE_DDS_PTCFG": LOOPBACK_ONLY,
        }

    def system_id(self, index: int) -> int:
        """MAVLink system id of a drone (from 0)."""
        return target_system(index + 1)
