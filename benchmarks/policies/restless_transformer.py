"""``random_transformer`` that looks again after every second action: four times as much for the GPU to do."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import random_transformer

NEEDS_CHECKPOINT = False
load = partial(random_transformer.load, execute_steps=2)
