"""Stubs of translator: only the plans are measured, nothing is called."""


def translate(text, language):
    raise NotImplementedError


def detect_language(text):
    raise NotImplementedError
