"""What the program provides: injectors, context and presets.

Annotations and a call enter; the values that no model can set leave.
"""
