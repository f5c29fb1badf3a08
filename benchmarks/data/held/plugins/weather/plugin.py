"""Stubs of weather: only the plans are measured, nothing is called."""


def current_weather(city):
    raise NotImplementedError


def forecast(city, days=None, units=None):
    raise NotImplementedError
