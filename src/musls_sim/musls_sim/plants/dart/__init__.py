"""The mechanism of rigid links in DART, as in Gazebo: parity, yardstick and oracle of tests."""
