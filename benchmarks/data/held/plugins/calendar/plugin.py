"""Stubs of calendar: only the plans are measured, nothing is called."""


def add_event(title, date, time=None, duration_minutes=None):
    raise NotImplementedError


def list_events(date):
    raise NotImplementedError


def cancel_event(title, date=None):
    raise NotImplementedError
