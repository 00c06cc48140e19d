"""JSON Schema as data: rendered from shapes; schemas of others vetted, and values checked against them.

Shapes and third-party schemas enter; JSON Schema, validators and problems leave. The only room that loads jsonschema.
Vetting stands here and not in the packs that bring such schemas, for hand-written and external tools, extended models
and the schemas beside a cattrs converter come without any pack.
"""
