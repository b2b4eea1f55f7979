"""Count the words that code and docs should not use, by word and by file.

    python sims/guard/words.py                    # a table by word, then by file
    python sims/guard/words.py --lines            # every place, as FILE:LINE: text
    python sims/guard/words.py --lines docs       # the places in one folder or file
    python sims/guard/words.py --json
    python sims/guard/words.py --root ../other    # another checkout

Identifiers count too: `told_by` and `SayTold` each hold "told". A place where the field uses the
word in this sense, or where it is part of a name that must stay (commands, options, files on disk),
is listed in ALLOWED with the reason, and not counted.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("neuro_eqprop", "docs", "README.md", "hardware_profiles/README.md")
SUFFIXES = {".py", ".pyi", ".md", ".js", ".css", ".html", ".toml"}

# What to count: a name, and the pattern of a part of an identifier or of prose, in lower case.
WORDS = {
    "lesson": r"lessons?",
    "pupil": r"pupils?",
    "teacher": r"teach(?:er|ers|es|ing)?",
    "taught": r"taught",
    "audience": r"audiences?",
    "tell, told": r"tells?|told|telling",
    "watch": r"watch(?:ed|es|ing)?",
    "beat": r"beats?",
    "nobody": r"nobody",
    "whole number": r"whole (?:numbers?|ones|weights?)",
    "real number": r"real (?:numbers?|ones)|reals",
    "left the finite": r"(?:left|leave|leaves) the finite",
    "words": r"words?",
    "asked": r"ask(?:s|ed|ing)?",
    "story": r"story|stories",
    "ear": r"ears?",
    "rehearse": r"rehears(?:e|es|ed|al)",
    "seat": r"seats?",
    "wall": r"walls?",
    "routes": r"routes?",
    "sprout": r"sprouts?|sprouted",
    "bill": r"bills?",
    "judge": r"judg(?:e|es|ed|ing|ement)",
    "verdict outside claims": r"verdicts?",
    "look": r"look(?:s|ed|ing)?",
    "comes to rest": r"com(?:e|es|ing) to rest|came to rest|at rest",
    "so many": r"so many",
    "of its own": r"of (?:its|their|his) own",
    "as it is": r"as (?:it is|they are)",
    "is to, are to": r"(?:is|are) to (?:be|reach|go|have|stand)",
    "way out": r"ways? out",
    "stands": r"stands?",
    "What ... docstring": r'^\s*(?:async )?"""what\b',
}

# Places that are right: a pattern on the line in lower case, and why.
ALLOWED = {
    r"traces watch|[\"']watch[\"']|def watch|import watch": "command traces watch",
    r"--watched|watched:": "option --watched",
    r"stopwatch": "a tool",
    r"watchdog": "the field's word",
    r"wall[ _-]?(?:clock|time|power)|system_wall": "wall-clock time; the boundary system_wall",
    r"lookup|look ?up|look-up": "a lookup",
    r"word_bits|word bits|words of this size|words=|synapse_word": "words of memory",
    r"\bwords\b.*(?:sentence|frequent|vocabulary|vector)": "words of a sentence",
    r"vocabulary|tokens.*words|words: int|lower-case words|\"looked\"": "words; a layer's name",
    r"labels.*words|integers or words": "labels that are words",
    r"counted\.lessons|words\.py": "a JSON field; this script",
    r"using lessons from deep learning": "the title of a paper",
    r"verdicts\.(?:md|json)|\"verdicts\"": "names of files on disk",
    r"study\.(?:ask|tell)|trial in asked|zip\(asked|asked = \[study": "Optuna's interface",
    r"\.tell\(\)": "a position in a file",
    r"word[ _](?:vectors?|dropout|deviation)|word's vector|of words|token and word": "text",
    r"between words|words left out|order\[:words\]|vectors of words": "text",
    r"\"lessons\"|/lessons\"|outcome\[\"watched\"\]|args\.watched": "JSON fields; an option",
    r"private word": "a conversation",
    r"[\"'](?:verdict|words|watched)[\"']": "fields of JSON results; a layer's name",
    r"watch\.html|watch\(args": "command traces watch",
    r"spiking\.walls|synapses\.story": "old module names in the change log",
    r"(?:page of the|cells with) verdicts": "verdicts of claims",
    r"at_rest|starts? (?:every sample )?at rest|(?:voltage|network|#) at rest": "resting state",
    r"power at rest|rest(?:ing)? potential": "the field's word",
}


def files(root: Path, folders: tuple[str, ...]) -> list[Path]:
    """Tracked text files below the folders of a checkout."""
    words = ["git", "-C", str(root), "ls-files", "--", *folders]
    found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    skipped = {"claims.md", "words.py", "_deprecated.py"}
    return [
        root / name
        for name in found
        if Path(name).suffix in SUFFIXES
        and Path(name).name not in skipped
        and "/claims/results/cells" not in name
    ]


def prose(line: str) -> str:
    """The line in lower case, with identifiers split into their parts."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", line)
    return split.lower()


def places(path: Path) -> list[tuple[str, int, str]]:
    """(word, line number, line) of each place in a file."""
    found = []
    claims = "claims" in path.parts
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if any(re.search(pattern, line.lower()) for pattern in ALLOWED):
            continue
        text = prose(line)
        for word, pattern in WORDS.items():
            if word == "verdict outside claims" and (claims or path.name == "verdicts.md"):
                continue
            whole = pattern if pattern.startswith("^") else rf"\b(?:{pattern})\b"
            found += [(word, number, line.strip())] * len(re.findall(whole, text))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--lines", nargs="*", help="show every place, in these folders or files")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--root", type=Path, default=ROOT)
    options = parser.parse_args()
    chosen = tuple(options.lines or FOLDERS)
    found = {path: places(path) for path in files(options.root, chosen)}
    name = {path: str(path.relative_to(options.root)) for path in found}
    if options.lines is not None:
        for path, each in found.items():
            for word, number, line in each:
                print(f"{name[path]}:{number}: [{word}] {line}")
        return
    by_word = Counter(word for each in found.values() for word, _, _ in each)
    by_file = Counter({name[path]: len(each) for path, each in found.items() if each})
    if options.json:
        by = {"words": dict(by_word.most_common()), "files": dict(by_file.most_common())}
        print(json.dumps(by | {"total": by_word.total()}, indent=2))
        return
    for count, what in (by_word, "word"), (by_file, "file"):
        print(f"| {what} | places |\n|---|---|")
        print("\n".join(f"| {key} | {number} |" for key, number in count.most_common()))
        print(f"| total | {count.total()} |\n")


if __name__ == "__main__":
    main()
