#!/usr/bin/env python3
"""Refuses sentences that hide their subject, in comments, docstrings, help texts and pages, and names of tests that do.

    tests/rooms/english.py

A sentence names a thing first and then says something about it: "The content of the file is data", not "What the file says is data". A
question may begin with what, who or which: it ends with a question mark. PHRASES has other words that readers stumble over."""
import ast
import io
import os
import re
import subprocess
import sys
import tokenize

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
# Texts of others, inputs of verifiers, and migrations, which never change.
LEFT_OUT = ("tests/fixtures/", "tests/cases/", "tests/fuzz/corpus/", "tests/fingerprints/", "tests/attacks/programs/", "schema/migrations/")
FIRST = r"(?:What|Whatever|Who|Whoever|Whom|Whose|Which)"
# Behind its beginning: not a full stop inside of a name (`file.c`), a number or e.g.
SENTENCE = re.compile(rf"(?:^|(?<=[.:;!?|] )|(?<=\A# ))(?:[*_\"(]*)({FIRST}\b[^?]*?)(\?|[.;|](?:\s|\Z)|\Z)")
PHRASES = {
    r"but for": "except (for)", r"go(?:es)? on(?! (?:disk|record))": "continue", r"that is so": "the fact itself", r"as is the next": "the fact, on both lines",
    r"for people": "the use", r"of no more use": "obsolete, or cannot be used again", r"waits for company": "waits for more",
}
PHRASE = re.compile(r"\b(?:" + "|".join(f"({phrase})" for phrase in PHRASES) + r")\b(?![\"”])")
NAME = re.compile(r"\b(?:def|void) (test_(?:what|whatever|who|whoever|whom|whose|which)_\w+)")


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def plain(comment):
    """Without its signs: one line, as one reads it."""
    return " ".join(re.sub(r"^\s*(?:/\*+|\*+/?|//|#+!?)[ \t]?|\*/\s*$", "", line) for line in comment.split("\n")).strip()


def paragraphs(comment):
    """(lines before it, text) of each paragraph of a comment."""
    lines, start, block = comment.split("\n"), 0, []
    for i, line in enumerate([*lines, ""]):
        if plain(line):
            start, block = (start, [*block, line]) if block else (i, [line])
        elif block:
            yield start, plain("\n".join(block))
            block = []


def of_c(text):
    """Comments, and strings that are sentences."""
    for match in re.finditer(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|/\*.*?\*/|//[^\n]*", text, re.DOTALL):
        found = match[0]
        if found.startswith(("/*", "//")):
            for before, paragraph in paragraphs(found):
                yield line_of(text, match.start()) + before, paragraph
        elif re.match(rf'"{FIRST} ', found):
            yield line_of(text, match.start()), found.strip('"')


def of_python(text):
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], plain(token.string)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node):
            for before, paragraph in paragraphs(node.body[0].value.value):
                yield node.body[0].lineno + before, paragraph


def of_markdown(text):
    blanked = re.sub(r"^```.*?^```|^    .*$", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE) if "```" in text else text
    blanked = re.sub(r"`[^`\n]*`", "`-`", blanked)
    for before, paragraph in paragraphs(re.sub(r"^#+ (.*)$", r"\n\1\n", blanked, flags=re.MULTILINE)):
        yield line_of(blanked, blanked.find(paragraph[:30])), paragraph


def of_yaml(text):
    for number, line in enumerate(text.split("\n"), 1):
        found = re.search(r"(?:^|\s)#\s+(.*)", line) or re.search(r"\b(?:description|summary): *['\"]?([A-Z][^{}]*)", line)
        if found:
            yield number, found[1]


def of_others(text):
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"\s*(?:#|--) ", line):
            yield number, plain(line)


READERS = {".c": of_c, ".h": of_c, ".def": of_c, ".py": of_python, ".md": of_markdown, ".yaml": of_yaml, ".yml": of_yaml, ".build": of_others, ".sh": of_others}


def faults(path, text):
    """(line, fault)"""
    first = text.partition("\n")[0]
    read = of_python if first.startswith("#!") and "python" in first else of_others if first.startswith("#!") else READERS.get(os.path.splitext(path)[1])
    if not read:
        return
    for number, said in read(text):
        for match in SENTENCE.finditer(said):
            if match[2] != "?":
                yield number, f"\"{match[1][:50].strip()}\": name the thing first, then say something about it"
        for match in PHRASE.finditer(said):
            phrase = list(PHRASES)[match.lastindex - 1]
            yield number, f"\"{match[0]}\": write {PHRASES[phrase]}"
    for match in NAME.finditer(text):
        yield line_of(text, match.start()), f"{match[1]}: the name begins with the thing that is tested"


# The reader itself: texts that it must refuse, and texts that it must leave alone.
REFUSED = (("a.c", "/* What the file says is data. */"), ("a.h", "/* Pure. Any thread.\n *\n * Who asks compares. */"), ("a.c", 'x("Which verifier; math.")'),
           ("a.py", "# All rows but for the last\n"), ("a.py", 'def test_what_is_wrong():\n    """Fine."""\n'), ("a.py", '"""Which engines there are."""\n'),
           ("a.md", "# What there must be\n\nText.\n"), ("a.yaml", "a: 1\n# What is left out has its default.\n"), ("a.c", "/* The batch goes on. */"))
ACCEPTED = (("a.c", "/* Which one is first? */"), ("a.c", "/* The file that says what to do. */"), ("a.c", 'x("What is 6*7?")'), ("a.py", "prompt = 'What a day. '\n"),
            ("a.md", "```\nWhat goes on\n```\n"), ("a.c", "/* A call that goes on record. */"), ("a.py", "def test_the_reply_says_what_is_wrong():\n    pass\n"))


def check_itself():
    wrong = [text for path, text in REFUSED if not list(faults(path, text))] + [text for path, text in ACCEPTED if list(faults(path, text))]
    for text in wrong:
        print(f"english.py itself is wrong about: {text!r}")
    return len(wrong)


def main():
    os.chdir(ROOT)
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=False)
    paths = listed.stdout.split("\0")[:-1] if listed.returncode == 0 else [
        os.path.relpath(os.path.join(folder, name), ROOT) for top in ("client", "deploy", "docs", "schema", "server", "tests", "verifiers")
        for folder, _, names in os.walk(top) for name in names]
    count, read = check_itself(), 0
    for path in sorted(paths):
        if path.startswith(LEFT_OUT) or path == "tests/rooms/english.py" or not os.path.isfile(path):
            continue
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError:
            continue
        read += 1
        for number, fault in faults(path, text):
            print(f"{path}:{number}: {fault}")
            count += 1
    print(f"english: {read} files, {count} faults")
    return count != 0 or read < 500


if __name__ == "__main__":
    sys.exit(main())
