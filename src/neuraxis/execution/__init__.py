"""Run a checked plan: schedule, resolve, authorise, invoke, store, report."""
