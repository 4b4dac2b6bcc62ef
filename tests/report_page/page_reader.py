"""A strict reader of the report page: structure, texts and addresses."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "wbr", "input", "img", "hr"}
_LINKING = ("href", "src", "srcset", "poster", "action", "data", "xlink:href", "formaction")


@dataclass
class Table:
    region: str = ""
    caption: str = ""
    heads: int = 0
    rows: list[list[str]] = field(default_factory=list)
    row_heads: int = 0


class PageReader(HTMLParser):
    """Fails on tags that aren't closed in order; collects what the tests look at."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[Table] = []
        self.headings: list[str] = []
        self.texts: list[str] = []
        self.styles = self.scripts = ""
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.attributes.append((tag, values))
        if "id" in values:
            self.ids.append(values["id"] or "")
        self.links += [value or "" for name, value in attrs if name in _LINKING]
        if tag in VOID:
            return
        self.stack.append(tag)
        if tag == "table":
            self.tables.append(Table())
        elif tag == "tr" and "thead" not in self.stack:
            self.tables[-1].rows.append([])
        elif tag == "th" and values.get("scope") == "col":
            assert "thead" in self.stack
            self.tables[-1].heads += 1
        elif tag == "th":
            assert values.get("scope") == "row"
            self.tables[-1].row_heads += 1
            self.tables[-1].rows[-1].append("")
        elif tag == "td":
            assert "tbody" in self.stack or "tfoot" in self.stack
            self.tables[-1].rows[-1].append("")
        elif re.fullmatch("h[1-6]", tag):
            self.headings.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.stack
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack and self.stack[-1] == "style":
            self.styles += data
        elif self.stack and self.stack[-1] == "script":
            self.scripts += data
        else:
            self.texts.append(data)
            if "caption" in self.stack:
                self.tables[-1].caption += data
            if ("td" in self.stack or "th" in self.stack) and self.tables[-1].rows and "thead" not in self.stack:
                self.tables[-1].rows[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def table(self, caption: str) -> Table:
        (found,) = (table for table in self.tables if table.caption.startswith(caption))
        return found
