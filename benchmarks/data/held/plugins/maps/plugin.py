"""Stubs of maps: only the plans are measured, nothing is called."""


def directions(origin, destination, mode=None):
    raise NotImplementedError


def find_places(kind, near, limit=None):
    raise NotImplementedError
