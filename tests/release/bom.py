"""The bill of materials of a release in the form of CycloneDX, from what its wheels say of themselves."""

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from email.message import Message
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.release.artifacts import artifacts, hashes, metadata

FILE = "sbom.cdx.json"


class Need(NamedTuple):
    """A requirement: the range of versions, and whether only an extra brings it."""

    name: str
    versions: str
    optional: bool


def needs(about: Message) -> list[Need]:
    """What a distribution requires."""
    found = [Requirement(text) for text in about.get_all("Requires-Dist", ())]
    return [
        Need(canonicalize_name(each.name), str(each.specifier), "extra ==" in str(each.marker or "")) for each in found
    ]


def write_bom(folder: Path, name: str, time: int) -> Path:
    """Write the bill of a folder of wheels, the same for the same wheels. `time` is in seconds since 1970.

    A requirement that is no part of the release has a range in the place of a version: the property `python:requires`.
    """
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output.json import JsonV1Dot6

    digests = hashes(folder)
    wheels = {path.name: metadata(path) for path in artifacts(folder) if path.suffix == ".whl"}
    own = {str(about["Name"]): _own(about, digests[file]) for file, about in wheels.items()}
    needed = {str(about["Name"]): needs(about) for about in wheels.values()}
    others = _others([need for several in needed.values() for need in several if need.name not in own])
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_OID, repr(sorted(digests.items()))))
    bom.metadata.timestamp = datetime.fromtimestamp(time, UTC)
    bom.metadata.component = Component(
        name="pegboard-release", version=name, type=ComponentType.APPLICATION, bom_ref="release"
    )
    bom.components.update([*own.values(), *others.values()])
    bom.register_dependency(bom.metadata.component, own.values())
    for each, several in needed.items():
        bom.register_dependency(own[each], [(own | others)[need.name] for need in several if not need.optional])
    path = folder / FILE
    path.write_text(JsonV1Dot6(bom).output_as_string(indent=2) + "\n", encoding="utf-8")
    return path


def _own(about: Message, digest: str) -> Any:
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.component import Component
    from cyclonedx.model.license import LicenseExpression
    from packageurl import PackageURL

    name, version = str(about["Name"]), str(about["Version"])
    return Component(
        name=name,
        version=version,
        description=str(about["Summary"]),
        licenses=[LicenseExpression(str(about["License-Expression"]))],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
        purl=PackageURL("pypi", None, name, version),
        bom_ref=name,
    )


def _others(found: Iterable[Need]) -> dict[str, Any]:
    from cyclonedx.model import Property
    from cyclonedx.model.component import Component, ComponentScope
    from packageurl import PackageURL

    by_name: dict[str, set[Need]] = {}
    for need in found:
        by_name.setdefault(need.name, set()).add(need)
    return {
        name: Component(
            name=name,
            purl=PackageURL("pypi", None, name),
            scope=ComponentScope.OPTIONAL if all(need.optional for need in several) else ComponentScope.REQUIRED,
            properties=[
                Property(name="python:requires", value=each)
                for each in sorted({need.versions for need in several if need.versions})
            ],
            bom_ref=name,
        )
        for name, several in sorted(by_name.items())
    }
