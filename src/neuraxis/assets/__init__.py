"""Objects that travel by reference: kept, described, saved."""
