# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the documentation as a site: the pages of docs/ and of the roles, and one for each module and plugin.

Antsibull-docs writes the pages of modules and plugins, Sphinx makes the site of all; a warning of either fails it. Links
to files that are no page lead to the forge.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

import venvs
from venvs import ROOT

FORGE = "https://github.com/durable-db/dbhost/blob/main"
SITE = ROOT / "tests/output/site"
COLLECTION = "durable.dbhost"
#: What a reader wants -> pages, in the order in which they are read.
SECTIONS = {
    "Start": ("docs/start", "docs/why", "docs/compare"),
    "How to": (
        *(
            "docs/attest",
            "docs/fleets",
            "docs/integrations",
            "docs/watch",
            "docs/recover",
            "docs/ups",
            "docs/measure",
            "docs/capture",
        ),
    ),
    "Look up": (
        *("docs/findings", "docs/variables", "docs/profiles", "docs/report", "docs/storage", "docs/boot"),
        *("docs/engines", "docs/engines/postgresql", "docs/engines/mariadb", "docs/engines/mssql"),
        *("docs/engines/mssql-test",),
        *("docs/engines/faircom", "docs/engines/firebird", "docs/power", "docs/files", "docs/support"),
        *("docs/distributions", "docs/papers", "docs/glossary"),
    ),
    "Verify": (
        "docs/order",
        "docs/trust",
        "docs/proof",
        "docs/track-record",
        "docs/facts",
        "docs/benchmarks",
    ),
    "Contribute": ("docs/architecture", "docs/extending", "docs/releasing"),
}
_LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s`]+)(#[^)\s]*)?(?=\))")
_CONF = """\
project = "durable.dbhost"
extensions = ["myst_parser", "sphinx_antsibull_ext"]
html_theme = "sphinx_ansible_theme"
html_show_copyright = False
myst_heading_anchors = 6
# Of Ansible's own site, which is not contacted here; links between our pages have another kind.
suppress_warnings = ["ref.ref"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
"""


def pages() -> list[str]:
    """Return the pages that are written by hand, as paths from the root without their ending."""
    found = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/README.md")]
    names = (path.relative_to(ROOT).with_suffix("").as_posix() for path in found)
    return sorted(name for name in names if not name.startswith("docs/evidence/"))


def linked(text: str, page: str, known: set[str]) -> str:
    """Return a page with links to what is no page or picture of the site led to the forge."""

    def lead(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), found[1]))
        if path.removesuffix(".md") in known or path.startswith("docs/images/"):
            return found[0]
        return f"{FORGE}/{path}{found[2] or ''}"

    return _LINK.sub(lead, text)


def assemble(target: Path) -> None:
    """Write the sources of the site, except the pages of modules and plugins."""
    known = set(pages())
    for page in known:
        written = target / f"{page}.md"
        written.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / f"{page}.md").read_text(encoding="utf-8")
        written.write_text(linked(text, page, known), encoding="utf-8")
    shutil.copytree(ROOT / "docs/images", target / "docs/images")
    index = linked((ROOT / "README.md").read_text(encoding="utf-8"), "README", known)
    roles = sorted(page for page in known if page.startswith("roles/"))
    reference = ("collections/index", *roles)
    trees = (_tree(title, names) for title, names in (*SECTIONS.items(), ("Reference", reference)))
    (target / "index.md").write_text("\n".join((index, *trees)), encoding="utf-8")
    (target / "conf.py").write_text(_CONF, encoding="utf-8")


def _tree(title: str, names: tuple[str, ...]) -> str:
    rows = "\n".join(names)
    return f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{rows}\n```\n"


def main() -> int:
    """Make the site, and return the exit code."""
    tools = venvs.ensure("docs") / "bin"
    venvs.link_collection()
    shutil.rmtree(SITE, ignore_errors=True)
    source, html = SITE / "source", SITE / "html"
    assemble(source)
    reference = source / "collections"
    reference.mkdir()
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "playbooks/collections")}
    environment["PATH"] = f"{tools}{os.pathsep}{environment['PATH']}"
    for command in (
        (
            *("antsibull-docs", "collection", "--use-current", "--fail-on-error", "--squash-hierarchy"),
            *("--dest-dir", str(reference), COLLECTION),
        ),
        ("sphinx-build", "-q", "-W", "--keep-going", "-b", "html", str(source), str(html)),
    ):
        code = subprocess.run(
            (str(tools / command[0]), *command[1:]), env=environment, check=False
        ).returncode
        if code:
            return code
    print(f"the site is in {html.relative_to(ROOT)}: open index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
