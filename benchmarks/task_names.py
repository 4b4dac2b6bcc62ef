"""RoboTwin's tasks on a benchmark's command line."""

from __future__ import annotations

import argparse

from evalkit.core.errors import UserError
from evalkit.core.tasks import parse_tasks


def task_names(text: str) -> str:
    """A ``type`` for argparse: comma-separated tasks, each of which there is.

    Raises:
        argparse.ArgumentTypeError: there is no task of a name.
    """
    try:
        return ",".join(parse_tasks(text))
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
