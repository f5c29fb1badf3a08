"""Stubs of clock: only the plans are measured, nothing is called."""


def set_timer(minutes, label=None):
    raise NotImplementedError


def set_alarm(time, repeat_daily=None):
    raise NotImplementedError


def world_time(city):
    raise NotImplementedError
