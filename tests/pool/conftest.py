from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def ray_here():
    """One Ray for all tests of the session; its workers can import what lies beside this file."""
    from evalkit.pool.ray_session import ray_session

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        with ray_session(2):
            yield


@pytest.fixture
def crew(ray_here):
    """Makes crews and closes them."""
    from evalkit.pool.ray_crew import RayCrew

    made = []

    def make(*arguments, **options):
        made.append(RayCrew(*arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()
