"""What completes a control level down to the rotors: attitude, INDI, mixing."""
