"""A planner made of rules: requests in plain sentences become calls."""
