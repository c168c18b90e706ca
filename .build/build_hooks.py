"""Steps of the build that `pyproject.toml` cannot express; Hatchling runs this file.

An editable install is a folder of links, `.editable/tapewright`, which has the shape of the
installed package. Python and type checkers both read it as an ordinary folder, and a new file
in a linked folder is there at once.
"""

import re
import shutil
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

__all__ = ["EditableLinks", "ReadmeOfIndex"]


class EditableLinks(BuildHookInterface):
    """Make the folder of links for ``pip install -e``."""

    PLUGIN_NAME = "custom"

    def initialize(self, version, build_data):
        if version == "editable":
            (folder,) = self.build_config.dev_mode_dirs
            link_package(
                Path(self.root), Path(self.root, folder), self.build_config.sources
            )


def link_package(root, folder, sources):
    """Link each entry of the source folders to its place in the package.

    Args:
        root: The folder of the checkout.
        folder: The folder of links, which is made anew.
        sources: For each source folder, its place in the package.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for source, package in sources.items():
        whole = (folder / package).parent != folder  # a subpackage is one link
        for each in [root / source] if whole else (root / source).iterdir():
            link = folder / package / ("" if whole else each.name)
            if each.name != "__pycache__":
                link.parent.mkdir(parents=True, exist_ok=True)
                symlink(link, each)


def symlink(link, target):
    try:
        link.symlink_to(target, target.is_dir())
    except OSError as error:
        raise OSError(
            f"an editable install needs symbolic links, got: {error}; on Windows, turn on "
            "the developer mode in the settings, or install without -e"
        ) from error


class ReadmeOfIndex(MetadataHookInterface):
    """Give the package index a README whose links are absolute."""

    PLUGIN_NAME = "custom"

    def update(self, metadata):
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_absolute_links(text, source, f"v{metadata['version']}"),
        }


def with_absolute_links(text, source, tag):
    """Return a Markdown text whose relative links lead to the repository.

    Args:
        text: The text.
        source: The address of the repository, as on GitHub, or None: links are then replaced
            by their text, and pictures by their description.
        tag: The tag of the version.
    """
    link = re.compile(r"(!?)\[([^][]*)\]\((?![a-z]+:|#)([^)\s]+)\)")
    if source is None:
        return link.sub(lambda found: f"*{found[2]}*" if found[1] else found[2], text)
    return link.sub(
        lambda found: (
            f"{found[1]}[{found[2]}]"
            f"({source}/{'raw' if found[1] else 'blob'}/{tag}/{found[3]})"
        ),
        text,
    )
