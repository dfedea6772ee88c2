"""Stages of the control period in compiled code: functions of the memory of a world."""
