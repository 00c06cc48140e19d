"""Sandbox: which confinement there is on this host, and what of the host a command sees in it.

In come the arguments of a command and its `Places`; out goes a `Confined`: what is started instead of it.
"""
