"""Missions: what is to be flown, the plan of set-points that follows, and its player."""
