"""How a system hangs: its tree of bodies, places in the air and on the ground."""
