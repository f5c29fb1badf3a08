"""Stubs of music: only the plans are measured, nothing is called."""


def play_music(what, artist=None, shuffle=None):
    raise NotImplementedError


def pause_music():
    raise NotImplementedError


def set_volume(level):
    raise NotImplementedError
