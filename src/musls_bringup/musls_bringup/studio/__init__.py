"""The page of `musls studio`."""
