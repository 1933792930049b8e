"""What tracejit's objects look like in a notebook, and pages of HTML to keep.

page = tj.show(f, x)        displays itself in a notebook, prints as text elsewhere
page.save("f.html")         one file that needs nothing else
"""

from __future__ import annotations

from tracejit.display.page import Page
from tracejit.display.showing import html_of, page_of, show

__all__ = ["Page", "html_of", "page_of", "show"]
