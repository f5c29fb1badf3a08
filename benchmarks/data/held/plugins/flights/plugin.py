"""Stubs of flights: only the plans are measured, nothing is called."""


def search_flights(origin, destination, date, passengers=None, cabin=None):
    raise NotImplementedError
