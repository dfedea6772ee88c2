"""What a formation does when it has lost a drone or a cable."""
