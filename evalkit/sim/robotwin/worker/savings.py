"""Work of RoboTwin's loop that can be left out without changing a result, by name.

Standard library only: both ends of the pipe read this file. Each saving keeps joint positions, object poses, success
and the pictures that are taken equal to the bit (``tests/sim_robotwin/test_savings.py``), so a run with other savings
is the same run.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterable

SAVINGS: Dict[str, str] = {
    "observations": "no observation after each action and at success; pictures are taken when the policy asks",
    "cameras": "pictures of the cameras the policy needs, instead of all four",
    "render-updates": "no update of the renderer after each physics step; kept where lights flicker at each update",
    "passive-forces": "gravity and Coriolis forces computed once a physics step, instead of up to eight times",
    "gripper-limits": "single numbers compared directly, instead of as arrays of one element",
    "path-timing": "both arms' paths timed in toppra's steps, without the Python around them that no number depends on",
    "orientations": "success checks convert the orientation of a thing at rest once, not after each physics step",
    "renderer": "one render system for all scenes of a worker, instead of a new one each",
    "planner": "the planner made once, and when the first path is planned: actions in joint space need none",
}
ALL: FrozenSet[str] = frozenset(SAVINGS)


def check(names: Iterable[str]) -> FrozenSet[str]:
    """The names as a set.

    Raises:
        ValueError: there is no saving of a name.
    """
    chosen = frozenset(names)
    for name in sorted(chosen - ALL):
        raise ValueError("no saving {!r}; there are {}".format(name, ", ".join(SAVINGS)))
    return chosen
