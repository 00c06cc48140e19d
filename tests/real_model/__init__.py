"""Does a real model find its way about the board? `nox -s real-model` asks one that runs on this machine."""
