"""What a pack's tests need: distributions that are installed without an installer."""

from pegboard.testing._distributions import fake_distribution

__all__ = ["fake_distribution"]
