"""The worker finds its way in both checkout layouts and isn't caught by their traps."""

from __future__ import annotations

import pytest
from robotwin_trees import make_tree, run_with_source, write

LAYOUTS = ("stable_2.0", "main")
PLANNER = "class Mine:\n    pass\n\nsource.use_planner(code_, Mine)\n"


@pytest.fixture(params=LAYOUTS)
def tree(request, tmp_path):
    return make_tree(tmp_path, request.param), request.param


def test_tasks_and_configurations_are_found_from_any_folder(tree):
    code = PLANNER + (
        "task = code_.task_class('click_bell')\n"
        "answer = [task.__module__, code_.config('_camera_config')['D435']['w'],\n"
        "          code_.robot_folder('aloha-agilex'), code_.unstable_error().__name__]"
    )
    folder = f"{tree[0]}/./assets/embodiments/aloha-agilex/"
    assert run_with_source(*tree, code) == ["envs.click_bell", 320, folder, "UnStableError"]


def test_a_planner_takes_curobos_place_where_curobo_is_missing(tree):
    code = PLANNER + "code_.task_class('click_bell')\nanswer = code_.module('robot.robot').CuroboPlanner.__name__"
    assert run_with_source(*tree, code) == "Mine"


def test_without_curobo_and_without_a_planner_the_import_says_so(tree):
    code = (
        "source.use_planner(code_, None)\n"
        "try:\n    code_.task_class('click_bell')\nexcept ImportError as error:\n    answer = str(error)"
    )
    assert "cuRobo can't be imported" in run_with_source(*tree, code)


def test_curobos_planner_is_made_once_when_first_used_and_its_sampler_starts_anew(tree):
    write(tree[0] / "curobo/__init__.py", "")
    motion_gen = (
        "made = []\n\nclass MotionGen:\n"
        "    def __init__(self, joints):\n        made.append(joints)\n        self.resets = 0\n\n"
        "    def reset(self, reset_seed=False):\n        self.resets += bool(reset_seed)\n"
    )
    write(tree[0] / "curobo/fake.py", motion_gen)
    code = (
        "source.use_planner(code_, None)\nplanner = source.kept(code_.module('robot.robot').CuroboPlanner)\n"
        "class Pose:\n    def __init__(self, *p):\n        self.p, self.q = p, (1, 0, 0, 0)\n"
        "first = [planner(Pose(0, 0), ['a'], yml_path='left') for _ in range(3)]\n"
        "import curobo.fake\nunused = len(curobo.fake.made)\n"
        "first[0].motion_gen\nfirst.append(planner(Pose(0, 0), ['a'], yml_path='left'))\n"
        "other = [planner(Pose(0, 0), ['b'], yml_path='left'), planner(Pose(0, 1), ['a'], yml_path='left'),\n"
        "         planner(Pose(0, 0), ['a'], yml_path='right')]\n"
        "answer = [unused, len(set(map(id, first))), len(set(map(id, first + other))), len(curobo.fake.made),\n"
        "          first[0].motion_gen.resets, isinstance(first[0], planner)]"
    )
    assert run_with_source(*tree, code) == [0, 1, 4, 1, 2, True]


def test_clutter_lies_where_a_fresh_process_puts_it(tree):
    code = PLANNER + (
        "task = code_.task_class('click_bell')\nanswer = []\n"
        "for _ in range(3):\n"
        "    code_.reset_process_state(7)\n"
        "    answer.append(round(task().get_cluttered_table(), 6))\n"
        "answer.append(round(task().get_cluttered_table(), 6))"
    )
    assert run_with_source(*tree, code) == [-0.29, -0.29, -0.29, 0.01]


def test_both_random_generators_start_from_the_seed(tree):
    code = PLANNER + (
        "import random, numpy\nanswer = []\n"
        "for seed in (5, 6, 5):\n"
        "    code_.reset_process_state(seed)\n"
        "    answer.append([random.random(), float(numpy.random.rand())])"
    )
    first, second, again = run_with_source(*tree, code)
    assert first == again
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_closing_drops_what_a_checkout_keeps(tree):
    code = PLANNER + (
        "env = code_.task_class('click_bell')()\nenv.scene = env.robot = object()\ncode_.close(env)\n"
        "answer = [env.closed, env.scene, env.robot, hasattr(env, 'engine')]"
    )
    assert run_with_source(*tree, code) == [True, None, None, False]


def test_sentences_depend_on_the_seed_alone_and_disturb_nobody(tree):
    code = (
        "import random\nrandom.seed(1)\nexpected = random.random()\nrandom.seed(1)\n"
        "info = {'{A}': '050_bell/base0'}\n"
        "ask = lambda seed: code_.sentences('click_bell', info, 'unseen', seed, 5)\n"
        "answer = [ask(3), ask(4), ask(3), random.random() == expected, 'agent' in sys.modules]"
    )
    first, other, again, undisturbed, imported = run_with_source(*tree, code)
    assert first == again
    assert first != other
    assert len(first) == 5
    assert all(sentence.startswith("unseen") for sentence in first)
    assert undisturbed
    assert not imported


def test_a_generator_that_exits_is_an_error_that_names_the_description(tree):
    code = (
        "try:\n    code_.sentences('click_bell', {'{A}': '050_bell/base9'}, 'seen', 1, 5)\n"
        "except ValueError as error:\n    answer = str(error)"
    )
    assert run_with_source(*tree, code).endswith("needs a description that isn't there: 050_bell/base9")
