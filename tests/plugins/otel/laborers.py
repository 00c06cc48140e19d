"""Tools that say which span they run in; they lie in a module that a process can import."""

from opentelemetry import baggage, trace

from pegboard import tool


def here() -> dict[str, str]:
    """Say which span is the current one, and what the baggage is."""
    context = trace.get_current_span().get_span_context()
    bags = {name: str(value) for name, value in baggage.get_all().items()}
    return {"trace": f"{context.trace_id:032x}", "span": f"{context.span_id:016x}", **bags}


@tool(backend="inline")
def inline() -> dict[str, str]:
    """Say so where the call is made."""
    return here()


@tool(backend="thread", timeout=30)
def thread() -> dict[str, str]:
    """Say so in a worker thread."""
    return here()


@tool(backend="process")
def process() -> dict[str, str]:
    """Say so in a process."""
    return here()


@tool
async def coroutine() -> dict[str, str]:
    """Say so on a loop."""
    return here()
