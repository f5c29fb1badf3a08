"""Stubs of email: only the plans are measured, nothing is called."""


def send_email(to, body, subject=None):
    raise NotImplementedError


def search_inbox(query, unread_only=None):
    raise NotImplementedError
