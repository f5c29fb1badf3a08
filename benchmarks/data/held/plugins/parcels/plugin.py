"""Stubs of parcels: only the plans are measured, nothing is called."""


def track_parcel(tracking_number, carrier=None):
    raise NotImplementedError
