import pytest


@pytest.fixture(autouse=True, scope="session")
def one_torch_thread():
    """Tiny networks gain nothing from threads, and lose much to them on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
