"""Reaction of a formation to the loss of a drone or a cable."""
