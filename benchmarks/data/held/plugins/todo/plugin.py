"""Stubs of todo: only the plans are measured, nothing is called."""


def add_task(task, due=None, priority=None):
    raise NotImplementedError


def list_tasks():
    raise NotImplementedError


def complete_task(task):
    raise NotImplementedError
