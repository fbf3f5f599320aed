"""Environments that read published data: a file or folder of rows, each of which an environment understands itself."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from rlvrlab.envs.base import BaseEnvironment, Read
from rlvrlab.envs.data_files import ENDINGS, LocatedPath, read_each, whatever_capitals
from rlvrlab.envs.files_read import kept_with_files
from rlvrlab.envs.split import role_in_training_set
from rlvrlab.errors import UserError
from rlvrlab.judge.keys import state_of
from rlvrlab.randomness import shuffled
from rlvrlab.types import Problem, Role

SPLITS = ("train", "test")


class DataSetEnvironment(BaseEnvironment, LocatedPath):
    """An environment that reads its problems from a data file or folder, and makes them where there is none."""

    path: str = ""
    """Where the rows are; empty: problems are made."""

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Distinct problems; a shorter list of the same seed is the beginning of a longer one."""
        if self.path:
            rows = [read for read, its_role in split_rows(self, Path(self.path)) if its_role == role]
            chosen = [made for read in shuffled(rows, seed, self.name, role)[:size] for made in read.problems(role)]
        else:
            chosen = self.made(role, size, seed)
        if len(chosen) < size:
            source = self.path or "the generator"
            raise UserError(f"{self.name}: {size} {role} problems asked for, {source} has {len(chosen)}")
        return chosen

    @abstractmethod
    def made(self, role: Role, size: int, seed: int) -> list[Problem]:
        """`size` problems that need no data, or fewer when nothing new turns up for long."""


def split_rows(env: BaseEnvironment, path: Path) -> list[tuple[Read, Role]]:
    """The rows of a data file or folder that `env` can judge, each content once, with their roles.

    A folder has train and test files: the publisher's test stays test, and what also occurs there is dropped from
    train, of which a share becomes dev. A single file named test or …_test is test only, any other is split by content.
    """
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return _split_rows(env, path, tuple([(file.name, state_of(file)) for file in files]))


@kept_with_files(32)
def _split_rows(env: BaseEnvironment, path: Path, _: tuple[object, ...]) -> list[tuple[Read, Role]]:
    """The same, read again only when a file has changed."""

    def distinct(file: Path) -> dict[str, Read]:
        first: dict[str, Read] = {}
        for read in read_each(file, env.read_row):
            first.setdefault(read.content, read)
        return first

    if not path.is_dir():
        published = path.name.partition(".")[0].lower().endswith("test")
        return [(read, "test" if published else read.role) for read in distinct(path).values()]
    files = {name: [file for end in ENDINGS if (file := whatever_capitals(path / f"{name}{end}"))] for name in SPLITS}
    if not all(files.values()):
        raise UserError(f"{path} needs a train and a test file, e.g. train.jsonl and test.jsonl.gz")
    train, test = (distinct(files[name][0]) for name in SPLITS)
    rest = [(read, role_in_training_set(read.role)) for content, read in train.items() if content not in test]
    return rest + [(read, "test") for read in test.values()]
