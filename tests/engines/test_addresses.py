"""engine.sampler: addresses, and files of them that change while a run trains."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlvrlab.engines.hf.addresses import Addresses
from rlvrlab.engines.hf.table import Hf
from rlvrlab.engines.openai.launch import announce_at
from rlvrlab.errors import UserError


def test_a_file_is_read_anew_and_an_unreadable_one_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "servers.txt"
    file.write_text("# ours\nhttp://a:1/v1\n\n")
    found = Addresses(f"http://z:9, {file}")
    assert found.urls == found.renew() == ["http://z:9", "http://a:1/v1"]
    file.write_text("http://a:1/v1 # the first\nhttp://b:2")
    assert found.renew() == ["http://z:9", "http://a:1/v1", "http://b:2"]
    file.unlink()
    assert found.renew() == ["http://z:9", "http://a:1/v1", "http://b:2"]
    file.write_bytes(b"\xff\xfe")
    assert found.renew() == ["http://z:9", "http://a:1/v1", "http://b:2"]


def test_a_file_that_names_nobody_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("http://a:1\n")
    found = Addresses(str(tmp_path / "s"))
    (tmp_path / "s").write_text("# all gone\n")
    assert found.renew() == ["http://a:1"]


def test_a_line_that_is_no_address_is_passed_over_and_told_once(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("http://a:1\n")
    found = Addresses(str(tmp_path / "s"))
    (tmp_path / "s").write_text("http://a:1\nhttp://b:99999\n")
    assert found.renew() == found.renew() == ["http://a:1"]
    (told,) = found.complaints()
    assert "b:99999" in told and found.complaints() == []


@pytest.mark.parametrize(("text", "words"), [("", "names no server"), ("b:99999", "http:// or https:// address")])
def test_before_a_run_it_is_the_users_to_mend(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "s").write_text(text)
    with pytest.raises(UserError, match=words):
        Addresses(str(tmp_path / "s"))


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.txt: No such file"):
        Addresses(str(tmp_path / "nowhere.txt"))


def test_the_file_is_looked_up_beside_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "servers.txt").write_text("http://a:1\n")
    table = Hf("nano", sampler="http://z:9, servers.txt, other.txt").beside(tmp_path)
    assert table.sampler == f"http://z:9,{tmp_path / 'servers.txt'},other.txt"
    assert Hf("nano").beside(tmp_path).sampler == "embedded"


def test_a_server_adds_itself_to_the_list_once(tmp_path: Path) -> None:
    file = tmp_path / "servers.txt"
    announce_at(file, ["http://a:1", "http://b:2"])
    announce_at(file, ["http://a:1"])
    assert file.read_text() == "http://a:1\nhttp://b:2\n"
    file.write_text("http://a:1 # by hand, without an end of line")
    announce_at(file, ["http://c:3"])
    assert Addresses(str(file)).urls == ["http://a:1", "http://c:3"]
    file.write_text("# http://d:4 was lost\nhttp://a:1  # not http://e:5\n")
    announce_at(file, ["http://a:1", "http://d:4", "http://e:5"])
    assert file.read_text().splitlines()[2:] == ["http://d:4", "http://e:5"], "what stands in a remark is on no list"
    with pytest.raises(UserError, match="--announce"):
        announce_at(tmp_path, ["http://a:1"])
