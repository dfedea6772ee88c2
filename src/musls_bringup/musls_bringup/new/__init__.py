"""Systems, airframes and bodies to start from: `musls new`, `musls import`."""
