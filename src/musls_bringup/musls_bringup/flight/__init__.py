"""One flight: flown, verified, shown, written into its folder."""
