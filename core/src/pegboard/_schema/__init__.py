"""JSON Schema as data: rendered from shapes; strangers' schemas vetted, and values checked against them.

Shapes and foreign schemas enter; JSON Schema, validators and problems leave. The only room that loads jsonschema.
"""
