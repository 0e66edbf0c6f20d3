"""The classes of an exception by their dotted names.

The clients and frameworks of nodes are the host's choice: what is known of their errors is known by name,
since importing them to know their errors would make them ours.
"""

from __future__ import annotations


def names_of(error: BaseException) -> set[str]:
    """The dotted names of the error's class and its bases."""
    return {f"{c.__module__}.{c.__qualname__}" for c in type(error).__mro__}
