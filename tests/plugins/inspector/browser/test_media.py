"""Results that are played."""

from collections.abc import Callable
from typing import Any

import pytest

from pegboard import AudioBlock, Toolkit, VideoBlock
from tests.plugins.inspector.browser.test_page import go, run
from tests.plugins.inspector.media import sound, video
from tests.plugins.inspector.served import Client

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("block", "tag"),
    [
        (AudioBlock.from_bytes(sound(), "audio/wav"), "audio"),
        (VideoBlock.from_bytes(video(), "video/webm"), "video"),
    ],
    ids=["sound", "video"],
)
def test_is_played(
    open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client], block: AudioBlock | VideoBlock, tag: str
) -> None:
    toolkit = Toolkit(plugins=())
    toolkit.register(lambda: block, name="play")
    page = open_page(inspected(toolkit))
    go(page, "play")
    media = run(page).locator(tag)
    assert media.evaluate("media => media.controls")
    page.wait_for_function("tag => document.querySelector(tag).readyState >= HTMLMediaElement.HAVE_METADATA", arg=tag)
    assert media.evaluate("media => media.duration") == pytest.approx(1, abs=0.1)
    media.evaluate("media => { media.muted = true; media.play(); }")
    page.wait_for_function("tag => document.querySelector(tag).ended", arg=tag)


def test_what_cannot_be_played_is_a_file(open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]) -> None:
    toolkit = Toolkit(plugins=())
    toolkit.register(lambda: AudioBlock.from_bytes(b"MThd", "audio/midi"), name="tune")
    page = open_page(inspected(toolkit))
    go(page, "tune")
    card = run(page)
    assert card.locator("audio").count() == 0
    card.get_by_role("button", name="Save audio.bin").wait_for()
