"""Fixtures of this folder."""

import pytest
from made_up_flight import flight, flight_messages, write_bag


@pytest.fixture(scope="session")
def made_up_flight():
    return flight(rate_hz=10.0)


@pytest.fixture(scope="session")
def flight_bag(made_up_flight, tmp_path_factory):
    return write_bag(tmp_path_factory.mktemp("bags") / "flight", flight_messages(made_up_flight))
