"""A tool that may block or crash runs in a process of its own."""

from pegboard import Toolkit, tool


@tool(backend="process", timeout=0.5)
def collatz(start: int) -> int:
    """Count the steps of a Collatz sequence until it reaches 1.

    Args:
        start: Where it begins.
    """
    number, steps = start, 0
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps


if __name__ == "__main__":
    with Toolkit(plugins=["process"]) as toolkit:
        toolkit.register(collatz)
        print(toolkit.call_sync("collatz", {"start": 6}).text)
        print(toolkit.call_sync("collatz", {"start": 0}).text)
