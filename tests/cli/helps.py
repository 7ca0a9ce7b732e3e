"""Help texts, and where there are any."""

import pytest

from sparc.cli.main import VERBS, main
from sparc.methods import METHODS

HELPS = [[verb] for verb in VERBS] + [["run", "seq-digits", "--method", name] for name in METHODS.classes]


def help_at(columns: int, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as end:
            main(arguments)
    assert end.value.code == 0
    return capsys.readouterr().out
