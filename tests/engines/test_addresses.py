"""engine.sampler: addresses, and files of them that change while a run trains."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlvrlab.engines.hf.addresses import Addresses
from rlvrlab.engines.hf.table import Hf
from rlvrlab.engines.openai.roster import Listed, announce_at
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
    announce_at(file, [Listed("http://a:1"), Listed("http://b:2")])
    announce_at(file, [Listed("http://a:1")])
    assert file.read_text() == "http://a:1\nhttp://b:2\n"
    file.write_text("http://a:1 # by hand, without an end of line")
    announce_at(file, [Listed("http://c:3")])
    assert Addresses(str(file)).urls == ["http://a:1", "http://c:3"]
    file.write_text("# http://d:4 was lost\nhttp://a:1  # not http://e:5\n")
    announce_at(file, [Listed("http://a:1"), Listed("http://d:4"), Listed("http://e:5")])
    assert file.read_text().splitlines()[2:] == ["http://d:4", "http://e:5"], "what stands in a remark is on no list"
    with pytest.raises(UserError, match="--announce"):
        announce_at(tmp_path, [Listed("http://a:1")])


def test_a_server_has_its_door_behind_it_and_the_last_line_counts(tmp_path: Path) -> None:
    file = tmp_path / "servers.txt"
    announce_at(file, [Listed("http://a:1", "http://a:9"), Listed("http://b:2")])
    found = Addresses(f"{file}, http://c:3/v1 adapters=http://c:9")
    assert found.urls == ["http://a:1", "http://b:2", "http://c:3/v1"]
    assert [found.door_of(url) for url in ("http://a:1", "http://b:2", "http://c:3")] == [
        "http://a:9", None, "http://c:9"
    ]  # fmt: skip
    announce_at(file, [Listed("http://a:1", "http://a:9")])
    assert len(file.read_text().splitlines()) == 2, "it is on the list already"
    announce_at(file, [Listed("http://a:1", "http://a:10")])  # started again, with another door
    assert found.renew() == ["http://a:1", "http://b:2", "http://c:3/v1"]
    assert found.door_of("http://a:1") == "http://a:10"
    announce_at(file, [Listed("http://a:1", "http://a:9")])
    assert found.renew() and found.door_of("http://a:1") == "http://a:9"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("http://a:1 door=http://a:9", "'door=http://a:9' behind it; only adapters=http://HOST:PORT may follow"),
        ("http://a:1 adapters=http://a:9 adapters=http://b:9", "only adapters=http://HOST:PORT may follow"),
        ("http://a:1 adapters=9000", "an http:// or https:// address is needed"),
        ("http://a:1 adapters=http://me:secret@a:9", "no user, password or query in an address"),
        ("http://a:1 me:secret@a:9", "'a:9' behind it"),
    ],
)
def test_a_door_that_is_none_is_said(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(UserError, match=words) as said:
        Addresses(line)
    assert "secret" not in str(said.value)
    (tmp_path / "s").write_text("http://b:2\n")
    found = Addresses(str(tmp_path / "s"))
    (tmp_path / "s").write_text(f"http://b:2\n{line}\n")
    assert found.renew() == ["http://b:2"]
    (told,) = found.complaints()
    assert "is passed over" in told and "secret" not in told
