"""The model that is served, and what becomes of one that is replaced."""

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest

from sparc.errors import InputError
from sparc.serve.looking import about
from sparc.serve.served import Served


def test_a_file_that_cannot_be_looked_at_is_no_missing_one(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served(own)
    stat = Path.stat

    def refuse(path: Path, **options: Any) -> Any:
        if path == own:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", refuse)
        served.read()
        assert served.trouble == f"{own} cannot be read (Permission denied): see who may look at it"
        assert served.taught().info.classes
        assert about(served)["exists"]
        with pytest.raises(InputError, match="Permission denied"):
            Served(own)
    served.read()
    assert served.trouble == ""


def test_a_link_to_itself_is_no_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "loop.sparc"
    path.symlink_to(path)
    with pytest.raises(InputError, match=r"loop\.sparc cannot be read"):
        Served(path)
    assert Served(tmp_path / "new.sparc").model is None


def test_a_replaced_model_is_kept_by_nobody(own: Path) -> None:
    served = Served(own)
    assert about(served)["exists"]
    assert served.model is not None
    before = weakref.ref(served.model)
    own.unlink()
    served.read()
    gc.collect()
    assert before() is None
