import pytest

pytest.register_assert_rewrite("tests.plugins.bridges.frameworks")
