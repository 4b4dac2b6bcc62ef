from evalkit.pool.health import DeviceHealth


def test_a_device_that_fails_with_whatever_job_is_found_out():
    health = DeviceHealth(tolerated=3)
    assert [health.failed("gpu", f"server {n}", {f"job {n}"}) for n in range(4)] == [False, False, False, True]


def test_a_job_counts_once_however_often_it_fails():
    health = DeviceHealth(tolerated=1)
    assert not any(health.failed("gpu", f"server {n}", {"the same"}) for n in range(10))


def test_a_crowd_counts_once_and_an_event_without_jobs_each_time():
    health = DeviceHealth(tolerated=2)
    assert not health.failed("gpu", "server 0", {"a", "b", "c"})
    assert not health.failed("gpu", "server 0", {"a", "b", "c"})
    assert not health.failed("gpu", "start 1", ())
    assert health.failed("gpu", "start 2", ())


def test_success_in_between_takes_everything_back():
    health = DeviceHealth(tolerated=1)
    for number in range(10):
        assert not health.failed("gpu", f"server {number}", {f"job {number}"})
        health.worked("gpu", "another")


def test_one_device_says_nothing_of_another():
    health = DeviceHealth(tolerated=1)
    assert not health.failed("gpu 0", "server 0", {"a"})
    assert not health.failed("gpu 1", "server 1", {"b"})
    health.worked("gpu 0", "c")
    assert health.failed("gpu 1", "server 2", {"d"})


def test_a_job_that_fails_alone_on_two_devices_is_to_blame_and_they_are_not():
    health = DeviceHealth(tolerated=1)
    health.failed("gpu 0", "server 0", {"bad", "good"})
    assert health.failed_on("bad") == {"gpu 0"}
    health.failed("gpu 1", "server 1", {"bad"})
    assert (health.count("gpu 0"), health.count("gpu 1")) == (0, 0)
    assert health.failed_on("bad") == {"gpu 0", "gpu 1"}


def test_a_job_that_works_elsewhere_leaves_the_blame_with_the_device():
    health = DeviceHealth(tolerated=1)
    health.failed("gpu 0", "server 0", {"good"})
    health.worked("gpu 1", "good")
    assert health.count("gpu 0") == 1
    assert health.failed_on("good") == frozenset()
