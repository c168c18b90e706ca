"""`html_table`: tables of notebooks, whose texts may be hostile."""

from html.parser import HTMLParser

from tapewright.core.messages.html_table import html_table


class Reader(HTMLParser):
    """The tags and the texts of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.open, self.texts, self.styles = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.open.append(tag)
        self.styles += [value for name, value in attributes if name == "style"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.texts.append(text)


HOSTILE = "<script>alert('x')</script><img src=x onerror=\"y\"> & </td></details>"


def test_texts_are_escaped_wherever_they_stand():
    page = Reader(html_table(HOSTILE, [HOSTILE], [[HOSTILE]], [HOSTILE]))
    assert page.texts == [HOSTILE] * 4
    assert set(page.tags) == {
        "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "div"
    }  # fmt: skip


def test_every_tag_is_closed():
    assert Reader(html_table("a", ["b", "c"], [["d", "e"]] * 3, ["f"])).open == []


def test_a_theme_sets_the_colors():
    styles = Reader(html_table("a", ["b", "c"], [["d", "e"]], numbers=["c"])).styles
    assert not any("color" in style or "background" in style for style in styles)
    assert [style.split(";")[0] for style in styles] == [
        "text-align: left", "text-align: right"
    ] * 2  # fmt: skip


def test_a_long_table_is_closed_at_first():
    assert html_table("a", ["b"], [["c"]] * 30).startswith("<details open>")
    assert html_table("a", ["b"], [["c"]] * 31).startswith("<details>")
