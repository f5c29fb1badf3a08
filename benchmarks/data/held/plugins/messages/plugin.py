"""Stubs of messages: only the plans are measured, nothing is called."""


def send_message(phone, text):
    raise NotImplementedError
