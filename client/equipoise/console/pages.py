"""What a page is: a function of the desk and of what was asked, and the path at which it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from starlette.responses import Response

from equipoise.console.asked import Asked
from equipoise.console.desk import Desk

Page: TypeAlias = Callable[[Desk, Asked], Response]
"""May raise every `EquipoiseError`, which is shown as a page of its own."""

Pages: TypeAlias = tuple[tuple[str, str, Page], ...]
"""Method, path and page. Only pages at POST change anything."""
