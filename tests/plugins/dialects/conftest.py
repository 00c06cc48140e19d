"""The types of the battery need a library that no pack does: without it they are left out."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("annotated_types") else ["test_every_type.py"]
