"""Reference page of the command line, generated from the parsers."""

from __future__ import annotations

from argparse import Action
from collections.abc import Iterator

from neuro_eqprop.cli.parsers import HelpFormatter, Parser
from neuro_eqprop.cli.program import COMMANDS, build_parser, command

INTRODUCTION = """\
# Command line

One program, `neuro-eqprop`; every command also has a function in the library ([API](api.md)).

- `--help` prints the options of a command with their defaults, and examples.
- `--json` prints exactly one JSON object on standard output. Progress and messages go to \
standard error.
- Exit code 0: done. 1: it failed, with one sentence that names the thing, the reason and a \
remedy; `--debug` shows the traceback. 2: wrong usage. 130: interrupted; 143: terminated.
- Files appear complete or not at all, and a folder that holds a run is replaced only with \
`--force`.
- `eval "$(neuro-eqprop completion bash)"` completes commands, options and names in the shell; put \
it into `~/.bashrc`. For zsh, write `neuro-eqprop completion zsh` to a file `_neuro-eqprop` in a \
folder of `$fpath`.

This page is generated from the parsers when the site is built.
"""
COMMON = ("json", "debug", "help")


def page() -> str:
    """Return the page as Markdown."""
    top = build_parser(COMMANDS)
    summaries = (f"| [`{name}`](#{name}) | {text} |\n" for name, text in COMMANDS.items())
    parts = [INTRODUCTION, "| command | what it does |\n|---|---|\n" + "".join(summaries)]
    for name, parser in below(top):
        parts += [f"## {name}\n", *section(name, parser)]
    return "\n".join(parts)


def below(parser: Parser) -> Iterator[tuple[str, Parser]]:
    """Yield the subparsers of a parser by name."""
    for action in parser._actions:
        if isinstance(action.choices, dict):
            yield from action.choices.items()


def section(name: str, parser: Parser) -> Iterator[str]:
    """Yield the parts of a command: summary, examples, options, subcommands."""
    yield f"{COMMANDS[name][0].upper()}{COMMANDS[name][1:]}.\n"
    yield "```sh\n" + "\n".join(command(name).examples) + "\n```\n"
    for file, content in command(name).files.items():
        yield f"`{file}` of the examples:\n"
        yield f"```toml\n{content}```\n"
    yield from table(parser)
    for verb, under in below(parser):
        yield f"`{name} {verb}`:\n"
        yield from table(under)


def table(parser: Parser) -> Iterator[str]:
    """Yield a table of the options of a parser, without those that all commands share."""
    formatter = HelpFormatter(parser.prog)
    rows = [
        f"| {invocation(action, formatter)} | {meaning(action, formatter)} |"
        for action in parser._actions
        if action.dest not in COMMON and not isinstance(action.choices, dict)
    ]
    if rows:
        yield "\n".join(["| argument | meaning |", "|---|---|", *rows]) + "\n"


def invocation(action: Action, formatter: HelpFormatter) -> str:
    """Format an option with the placeholder of its value; in code, a bar ends no cell."""
    return f"`{formatter._format_action_invocation(action)}`"


def meaning(action: Action, formatter: HelpFormatter) -> str:
    """Return the help of an option, with its default."""
    text = formatter._expand_help(action)
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
