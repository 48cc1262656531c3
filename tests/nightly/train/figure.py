#!/usr/bin/env python3
"""One figure of a report's page as a file of its own: figure.py report.html reward > reward.svg

The picture is the report's, byte by byte; the style of the page goes into it, and a white or dark ground as the reader's system has it.
"""
import re
import sys

KEPT = (":root", ".grid", ".axis", "text.mark", ".line", ".whisker", ".band", "circle.mark", ".s0", ".s4", "@media (prefers-color-scheme")


def style_of(page):
    """The rules that a picture needs; a block of several lines ends with a brace in the first column."""
    text = re.search(r"<style>\n(.*?)</style>", page, re.S)[1]
    rules = re.findall(r"^(?:[^\n{]*\{[^\n]*\}|[^\n{]*\{\n.*?^\})$", text, re.S | re.M)
    return "\n".join(rule for rule in rules if rule.startswith(KEPT))


def figure_of(page, name):
    picture = re.search(rf'<svg role="img"[^>]*aria-labelledby="{re.escape(name)}-title.*?</svg>', page, re.S)
    if not picture:
        raise SystemExit(f"the report has no figure {name!r}")
    ground = '<rect width="100%" height="100%" style="fill: var(--paper)"/>'
    head, body = picture[0].split("</desc>", 1)
    style = f"<style>\n{style_of(page)}\ntext {{ font-family: system-ui, sans-serif; }}\n</style>"
    return head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + f"</desc>\n{style}\n{ground}" + body + "\n"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write(figure_of(file.read(), sys.argv[2]))


if __name__ == "__main__":
    main()
