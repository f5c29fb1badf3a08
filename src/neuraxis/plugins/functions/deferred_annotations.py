"""Read annotations, which Python 3.14 evaluates when they are first read.

There an annotation with a name that is not defined, such as one that is imported under
`TYPE_CHECKING`, raises when it is read. Here it is a `typing.ForwardRef`, as if its
author had put it in quotes (PEP 649).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

if sys.version_info >= (3, 14):
    from annotationlib import Format, get_annotations


def annotations_of(function: Any) -> Mapping[str, Any]:
    """Return a function's annotations; empty if it has none."""
    if sys.version_info >= (3, 14):
        if getattr(function, "__annotate__", None) is not None:
            return get_annotations(function, format=Format.FORWARDREF)
    return getattr(function, "__annotations__", {})


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return a function's signature.

    Raises:
        TypeError, ValueError: it has none that can be read.
    """
    if sys.version_info >= (3, 14):
        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)
