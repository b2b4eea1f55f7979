"""The page on data does what it says: its examples run, its table is that of the program."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from neuro_eqprop.cli import main
from neuro_eqprop.cli.program import parser
from neuro_eqprop.data import DATASETS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "data.md"
CLAIMS_PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "verdicts.md"
TEXT = PAGE.read_text()


@pytest.mark.parametrize(("page", "least"), [(PAGE, 8), (CLAIMS_PAGE, 5)])
def test_the_examples_print_what_they_say(
    page: Path, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page is CLAIMS_PAGE:
        pytest.importorskip("gymnasium", reason="gymnasium is not installed")
    monkeypatch.chdir(tmp_path)
    text = re.sub(r"^```.*$", "", page.read_text(), flags=re.MULTILINE)
    example = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert len(example.examples) >= least
    said: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    assert result.failed == 0, "".join(said)


def test_the_commands_are_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    calls = re.findall(r"^neuro-eqprop ([^#\n]+)", TEXT, re.MULTILINE)
    assert len(calls) == 4
    for call in calls:
        words = call.split()
        parser(words).parse_args(words)
        if words[1] in {"list", "check"}:
            assert main(words) == 0
    assert "embedded" in capsys.readouterr().out


def test_every_data_set_is_listed_with_its_size() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| `")]
    for name, entry in DATASETS.items():
        row = next(line for line in rows if f"`{name}`" in line)
        sizes = row.rpartition("|")[0].rpartition("|")[2]
        assert f" {entry.test}" in sizes
        assert str(entry.train) in sizes
        assert " x ".join(str(n) for n in entry.shape) in row
