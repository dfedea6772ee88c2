"""Which TF frame is which body."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from musls_analysis.recordings.recording import LOAD
from musls_description.errors import ConfigError

_ENDING = r"(?:[_/](?:base_link|base|link|body|marker|pose|gt|mocap|measured))*"
_DESIRED = r"[_/](?:des|desired|sp|setpoint|ref|reference|target)"
_LOAD = re.compile(rf"(?:slung_?)?(?:load|payload)_?1?{_ENDING}(?P<desired>{_DESIRED})?")
_DRONE = re.compile(
    r"(?:drone|px4|uav|quad|quadrotor|quadcopter|copter|vehicle|mav|x500|cf|agent)[_/]?"
    rf"(?P<number>[0-9]{{1,9}}){_ENDING}(?P<desired>{_DESIRED})?"
)


def bodies_of_frames(
    parents: Mapping[str, str], given: Mapping[str, str], source: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Choose the frame of each body by its name.

    Args:
        parents: Parent by frame, of all frames that move.
        given: Frame by body, as the user has it; goes before any guess.
        source: File, for messages.

    Returns:
        Frame by body, measured and set-points; the load first, then the drones in order.

    Raises:
        ConfigError: A given frame does not exist, several frames look like one body, or the load
            or all drones are missing.
    """
    for body, frame in given.items():
        if not (body == LOAD or re.fullmatch(r"drone_[1-9][0-9]{0,8}", body)):
            raise ConfigError(
                f"frames: '{body}' is no body; bodies are load, drone_1, drone_2, ..."
            )
        if frame not in parents:
            raise ConfigError(
                f"{source}: no TF frame '{frame}' (for {body}); it has {_few(parents)}"
            )
    measured, wanted = _guesses(set(parents) - set(given.values()))
    measured = {body: frames for body, frames in measured.items() if body not in given}
    chosen = {body: _one(body, frames, parents, source) for body, frames in measured.items()}
    chosen |= given
    if LOAD not in chosen or len(chosen) < 2:
        body = "drone_1" if LOAD in chosen else LOAD
        raise ConfigError(
            f"{source}: no TF frame looks like {body}; name it with --frames {body}=FRAME: "
            f"it has {_few(parents)}"
        )
    setpoints = {body: _one(body, frames, parents, source) for body, frames in wanted.items()}
    return _ordered(chosen), _ordered({b: f for b, f in setpoints.items() if b in chosen})


def _guesses(frames: Iterable[str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Frames that look like each body, measured and set-points; drones counted from 1."""
    found: list[tuple[int | None, bool, str]] = []  # None: the load
    for frame in sorted(frames):
        name = frame.strip("/").lower()
        if match := _LOAD.fullmatch(name):
            found.append((None, bool(match["desired"]), frame))
        elif match := _DRONE.fullmatch(name):
            found.append((int(match["number"]), bool(match["desired"]), frame))
    first = min((key for key, _, _ in found if key is not None), default=1)
    shift = 1 if first == 0 else 0
    measured: dict[str, list[str]] = {}
    wanted: dict[str, list[str]] = {}
    for key, desired, frame in found:
        body = LOAD if key is None else f"drone_{key + shift}"
        (wanted if desired else measured).setdefault(body, []).append(frame)
    return measured, wanted


def _one(body: str, frames: list[str], parents: Mapping[str, str], source: str) -> str:
    """The frame of a body; of a chain such as drone_1 -> drone_1/base_link its root."""
    roots = [frame for frame in frames if parents[frame] not in frames]
    if len(roots) != 1:
        raise ConfigError(
            f"{source}: TF frames {_few(frames)} all look like {body}; name one with "
            f"--frames {body}=FRAME"
        )
    return roots[0]


def _ordered(frames: dict[str, str]) -> dict[str, str]:
    def key(body: str) -> int:
        return 0 if body == LOAD else int(body.rsplit("_", 1)[1])

    return {body: frames[body] for body in sorted(frames, key=key)}


def _few(names: Iterable[str]) -> str:
    names = sorted(names)
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
