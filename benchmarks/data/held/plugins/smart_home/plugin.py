"""Stubs of smart_home: only the plans are measured, nothing is called."""


def switch_light(room, on):
    raise NotImplementedError


def dim_light(room, percent):
    raise NotImplementedError


def set_temperature(degrees, room=None):
    raise NotImplementedError
