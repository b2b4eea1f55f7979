"""Help teaches: examples that run, defaults, suggestions, completion and the next step."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from argparse import Action
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from neuro_eqprop.cli import main
from neuro_eqprop.cli.completion import actions
from neuro_eqprop.cli.parsers import Parser, takes_value
from neuro_eqprop.cli.program import COMMANDS, build_parser, command, parser

TOO_LONG = {
    "demo": "takes a minute; tests/cli/test_commands.py runs it",
    "data get mnist": "downloads",
}


def call(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(list(words))
        except SystemExit as left:
            code = int(left.code or 0)
    return code, out.getvalue(), err.getvalue()


def subparser(name: str) -> Parser:
    top = build_parser((name,))
    (places,) = (action for action in top._actions if isinstance(action.choices, dict))
    assert isinstance(places.choices, dict)
    found = places.choices[name]
    assert isinstance(found, Parser)
    return found


def examples(name: str) -> Iterator[list[str]]:
    for example in command(name).examples:
        words = shlex.split(example.partition(" > ")[0])
        assert words[:2] == ["neuro-eqprop", name]
        yield words[1:]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_examples_that_parse(name: str) -> None:
    code, text, _ = call(name, "--help")
    assert code == 0
    assert "examples:\n  neuro-eqprop " in text
    for words in examples(name):
        assert parser(words).parse_args(words).command == name


def with_a_value() -> list[tuple[str, Action]]:
    return [
        (name, action)
        for name in COMMANDS
        for action in actions(subparser(name))
        if takes_value(action)
    ]


@pytest.mark.parametrize(
    ("name", "action"),
    with_a_value(),
    ids=lambda part: part if isinstance(part, str) else part.option_strings[0],
)
def test_every_option_states_its_meaning_and_its_default(name: str, action: Action) -> None:
    formatter = subparser(name)._get_formatter()
    text = formatter._get_help_string(action) or ""
    stated = any(word in text for word in ("default", "required", "repeatable"))
    assert action.help, f"{name} {action.option_strings[0]} has no help"
    assert stated, f"{name} {action.option_strings[0]}: {text}"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_and_flag_states_its_meaning(name: str) -> None:
    assert [a.dest for a in actions(subparser(name)) if not a.help and a.dest != "verb"] == []


@pytest.mark.slow
def test_every_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the order of a user: train first, then what reads the run."""
    monkeypatch.chdir(tmp_path)
    last = ["compare", "energy", "traces", "report", "nir"]
    for name in [*(n for n in COMMANDS if n not in last), *last]:
        for file, content in command(name).files.items():
            (tmp_path / file).write_text(content)
        for words in examples(name):
            if any(" ".join(words).startswith(each) for each in TOO_LONG):
                continue
            assert main(words) == 0, f"{' '.join(words)}: {capsys.readouterr().err}"
            capsys.readouterr()
    made = {"rates.h5", "spikes.h5", "spikes.nwb", "digits.nir", "digits.net", "both.html"}
    assert made <= {path.name for path in tmp_path.iterdir()}


def test_help_shows_the_files_that_the_examples_read() -> None:
    _, text, _ = call("sweep", "--help")
    assert "sweep.toml of the examples:\n  [settings]" in text
    assert "\n  [axes]" in text


def test_a_missing_sweep_file_says_what_it_holds(tmp_path: Path) -> None:
    code, _, err = call("sweep", str(tmp_path / "none.toml"), "--out", str(tmp_path / "out"))
    assert code == 1
    for part in (
        "no such file",
        "[axes]",
        "[settings]",
        "sweep --help",
        "page 'Run a sweep, here or on a cluster'",
    ):
        assert part in err


def test_learn_shows_placeholders_and_choices_like_train() -> None:
    learn, train = ({a.dest: a for a in actions(subparser(n))} for n in ("learn", "train"))
    for key in ("dataset", "model", "hidden", "activation", "epochs", "learning_rate", "nudging"):
        assert learn[key].metavar == train[key].metavar
    assert [learn[key].metavar for key in ("bits", "tau", "code")] == ["N", "X", "NAME"]
    _, text, _ = call("learn", "--help")
    assert "VALUE " not in text.replace("=VALUE", "")
    assert "(default )" not in text
    assert "hard_tanh" in (learn["activation"].help or "")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["trian"], "did you mean train?"),
        (["--verison"], "unknown option --verison; did you mean --version?"),
        (
            ["profiles", "shw", "loihi1"],
            "'shw' is none of list, show, explain, validate, fit; did you",
        ),
        (["--json", "doctor"], "options follow the command, as in `neuro-eqprop doctor --json`"),
        (["traces", "exprt", "x.h5"], "did you mean export?"),
        (["completion", "fish"], "'fish' is none of bash, zsh, tcsh"),
        (["evalaute", "x"], "did you mean evaluate?"),
        (["train", "--datset", "digits", "--out", "x"], "--datset; did you mean --dataset?"),
        (["train", "--ot", "x"], "--ot; did you mean --out?"),
        (["evaluate", "x", "--smaples=5"], "--smaples; did you mean --samples?"),
        (["data", "get", "mnist", "--tO", "x"], "--tO; did you mean --to?"),
    ],
)
def test_a_misspelled_command_or_option_is_suggested(typed: list[str], meant: str) -> None:
    code, out, err = call(*typed)
    assert (code, out) == (2, "")
    assert meant in err
    assert err.count("\n") == 1


def test_a_missing_argument_is_one_sentence() -> None:
    code, out, err = call("simulate", "run")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "--on" in err
    assert "`neuro-eqprop simulate --help`" in err


NEXT = (
    ("train", "--hidden", "8", "--epochs", "1", "--batch", "512", "--out", "my run"),
    ("learn", "--hidden", "8", "--samples", "20", "--epochs", "1", "--out", "chip"),
    ("evaluate", "my run", "--samples", "2"),
    ("evaluate", "my run", "--on", "emulator", "--code", "graded", "--samples", "2"),
    ("evaluate", "my run", "--on", "emulator", "--bits", "8", "--samples", "2"),
    ("simulate", "my run", "--on", "emulator", "--samples", "2", "--force"),
    ("energy", "my run", "--samples", "2", "--profile", "loihi1"),
)


@pytest.mark.slow
def test_the_next_step_is_printed_on_standard_error_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in NEXT:
        code, out, err = call(*words)
        assert code == 0, err
        assert "next:" not in out
        (line,) = (line for line in err.splitlines() if line.startswith("next: neuro-eqprop "))
        step = shlex.split(line.removeprefix("next: neuro-eqprop "))
        small = ["--samples", "2"] if step[0] in {"evaluate", "energy"} else []
        assert call(*step, *small)[0] == 0, line
    code, out, err = call(*NEXT[-1], "--json")
    assert json.loads(out)
    assert err == ""


def completed(script: Path, *words: str) -> set[str]:
    """What bash offers after these words, the last of which is being typed."""
    code = f"""
source {script}
COMP_WORDS=({" ".join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}
COMPREPLY=(); $(complete -p neuro-eqprop | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_bash_completes_commands_options_and_names(tmp_path: Path) -> None:
    code, text, _ = call("completion", "bash")
    assert code == 0
    script = tmp_path / "completion.bash"
    script.write_text(text)
    assert {"train", "translate", "traces"} <= completed(script, "neuro-eqprop", "tra")
    assert "--samples" in completed(script, "neuro-eqprop", "evaluate", "--sam")
    assert completed(script, "neuro-eqprop", "train", "--model", "loop") == {"looped"}
    assert completed(script, "neuro-eqprop", "evaluate", "--on", "brian2-") == {"brian2-biology"}
    assert completed(script, "neuro-eqprop", "energy", "--profile", "spinnaker1_") == {
        "spinnaker1_chip",
        "spinnaker1_spinn5",
    }


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells_have_a_script(shell: str) -> None:
    code, text, _ = call("completion", shell)
    assert code == 0
    assert "looped" in text


def test_the_program_starts_without_the_parsers_of_other_commands() -> None:
    code = (
        "import sys; from neuro_eqprop.cli.program import parser; parser(['doctor'])\n"
        "print('torch' in sys.modules, 'shtab' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
