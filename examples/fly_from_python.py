"""Hang in the air with two controllers and compare them; then step a session by hand."""

from own_controller import LoadFeedback

import musls


def main() -> None:
    """Fly twice and print the load's mean errors; nothing is written."""
    scenario = musls.load_scenario(
        "hold", {"system.cables.links": 10, "mission.stages.0.duration_s": 8.0}
    )
    formation = musls.fly(scenario)
    feedback = musls.fly(scenario, controller=LoadFeedback)
    for name, run in (("formation", formation), ("load feedback", feedback)):
        load, cable = run.body("load"), run.cable(1)
        print(
            f"{name}: {len(run.time_s)} samples, load at {load.position_enu_m[-1].round(3)} m, "
            f"tension of cable 1 up to {cable.tension_n.max():.1f} N"
        )
        print(run.errors())

    with musls.Session(scenario) as session:  # step by step, with everything at hand
        while not session.finished and session.time_s < 1.0:
            session.advance(1)
        print(f"after {session.time_s:.3f} s in stage {session.stage}: {session.state.tension_n}")


if __name__ == "__main__":
    main()
