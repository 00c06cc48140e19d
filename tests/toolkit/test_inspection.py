"""What hosts may ask a toolkit: its plugins, its board, and which tools were imported."""

import sys

from pegboard import Toolkit
from pegboard.inspection import Plugins, board_of, is_loaded, plugins_of
from pegboard_testing import fake_distribution
from tests.support.plugin_site import Site


def test_what_is_installed_without_importing_it(site: Site) -> None:
    site.add("dice")
    (record,) = Plugins.load(imports=False, environ={}).records
    assert (record.name, record.state) == ("dice", "found")
    assert "site_dice" not in sys.modules


def test_who_contributes_what(site: Site) -> None:
    site.add("dice")
    with Toolkit() as toolkit:
        plugins = plugins_of(toolkit)
        offered, *own = plugins.contributions("provide_tools")
        assert (offered.origin.distribution, offered.pack, offered.builtin) == ("acme-dice", "dice", False)
        assert own
        assert all(each.builtin for each in own)
        assert all(each.builtin for each in plugins.contributions("provide_types"))
        assert set(plugins.import_seconds) == {"dice"}


def test_names_that_clash(site: Site) -> None:
    for name in ("dice", "drum"):
        site.add(name, "def roll(): ...\n@hookimpl\ndef provide_tools(settings): return [roll]")
    with Toolkit() as toolkit:
        assert [tool.name for tool in board_of(toolkit).clashes["roll"].sides] == ["dice__roll", "drum__roll"]


def test_import_string_is_loaded_when_it_is_described(site: Site) -> None:
    site.add("lazy", "@hookimpl\ndef provide_tools(settings): return ['site_behind:heavy']")
    fake_distribution(site.path, "behind", modules={"site_behind": "def heavy(): 'Lift.'"})
    with Toolkit() as toolkit:
        toolkit.register(len, name="own")
        heavy, own = toolkit["heavy"], toolkit["own"]
        assert (is_loaded(heavy), is_loaded(own)) == (False, True)
        assert heavy.description == "Lift."
        assert is_loaded(heavy)
