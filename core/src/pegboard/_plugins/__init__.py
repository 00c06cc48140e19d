"""Plugins: found, chosen, loaded, asked, and kept from breaking each other; and their settings.

Installed distributions enter; records, and what the hooks answered, leave. The only room that loads pluggy and
importlib-metadata.
"""
