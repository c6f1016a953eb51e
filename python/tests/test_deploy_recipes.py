"""Recipes by which others pack, install and cite the program, and files that people send.

Each is given to its own checker, where a package registry has that, else to a stand-in for what reads it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from skips import skip

ROOT = Path(__file__).parents[2]
CITATION = ROOT / "CITATION.cff"
FORMS = ROOT / ".github/ISSUE_TEMPLATE"
SPACK = ROOT / "packaging/spack/spack_repo/switchcost/packages/switchcost/package.py"
if not CITATION.exists():
    skip("hardware:docs", "the recipes are not beside the tests", whole_module=True)


def one(pattern: str, file: str | Path) -> str:
    (found,) = re.findall(pattern, ROOT.joinpath(file).read_text(), re.MULTILINE)
    return str(found)


VERSION = one('^version = "(.*)"', "Cargo.toml")


def checked(schema: str, *files: Path) -> bool:
    """Whether the files are as the schema that their readers publish."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.stdout, done.stderr)
    return done.returncode == 0


def test_all_recipes_have_the_programs_version() -> None:
    assert one("^version: (.*)", CITATION) == VERSION
    assert one("^Version: (.*)", "packaging/switchcost.spec") == VERSION
    assert one(r'^    version\("([0-9.]+)"', SPACK) == VERSION


def test_the_citation_is_as_its_format_wants(tmp_path: Path) -> None:
    assert checked("citation-file-format", CITATION)
    wrong = tmp_path / "CITATION.cff"
    wrong.write_text(CITATION.read_text().replace("type: software", "type: program"))
    assert not checked("citation-file-format", wrong)


def test_issue_forms_are_as_github_wants(tmp_path: Path) -> None:
    forms = [form for form in sorted(FORMS.iterdir()) if form.name != "config.yml"]
    assert [form.stem for form in forms] == ["bug", "feature", "result"]
    assert checked("github-issue-forms", *forms)
    assert checked("github-issue-config", FORMS / "config.yml")
    wrong = tmp_path / "bug.yml"
    wrong.write_text(forms[0].read_text().replace("type: input", "type: line"))
    assert not checked("github-issue-forms", wrong)


class Recorder(types.ModuleType):
    """A module of Spack, which no package registry has: it notes the directives that a recipe calls."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.__all__ = ["conflicts", "depends_on", "license", "requires", "run_after", "variant", "version"]

    def __getattr__(self, name: str) -> Any:
        if name not in self.__all__:
            raise AttributeError(name)

        def directive(*words: Any, **options: Any) -> Any:
            self.calls.append((name, words, options))
            return lambda function: function

        return directive


def test_the_recipe_of_spack_builds_the_program_of_this_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    spack = Recorder("spack.package")
    cargo = types.ModuleType("spack_repo.builtin.build_systems.cargo")
    cargo.CargoPackage = type("CargoPackage", (), {})  # type: ignore[attr-defined]
    for name in ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "spack.package", spack)
    monkeypatch.setitem(sys.modules, cargo.__name__, cargo)
    names: dict[str, Any] = {}
    exec(compile(SPACK.read_text(), SPACK, "exec"), names)
    recipe = names["Switchcost"]

    manifest = ROOT / recipe.build_directory / "Cargo.toml"
    assert one(r'^\[package\]\nname = "(.*)"', manifest) == "switchcost"
    variants = [words[0] for directive, words, _ in spack.calls if directive == "variant"]
    assert one("^default = (.*)", manifest) == json.dumps(variants), "each product is a variant"
    rust = one('^rust-version = "(.*)"', "Cargo.toml")
    assert ("depends_on", (f"rust@{rust}:",), {"type": "build"}) in spack.calls
    recipe.spec = types.SimpleNamespace(satisfies=lambda words: words != "+switches")
    arguments = recipe().build_args
    assert arguments == ["--locked", "--no-default-features", "--features", "documents,programs"]


NIX = """
let
  pkgs = {
    rustPlatform.buildRustPackage = arguments: arguments;
    installShellFiles = "installShellFiles";
    lib.licenses = { mit = "MIT"; asl20 = "Apache-2.0"; };
  };
  nixpkgs = {
    lib.genAttrs = names: of: builtins.listToAttrs (map (name: { inherit name; value = of name; }) names);
    legacyPackages = { x86_64-linux = pkgs; aarch64-linux = pkgs; };
  };
  flake = import ROOT/flake.nix;
  found = (flake.outputs { inherit nixpkgs; self = "the source"; }).packages;
in
builtins.mapAttrs (_: packages: {
  inherit (packages.default) pname version src cargoBuildFlags;
  inherit (packages.default.meta) license mainProgram;
  lock = builtins.pathExists packages.default.cargoLock.lockFile;
}) found
"""


def test_the_flake_of_nix_builds_the_program_of_this_workspace() -> None:
    nix = shutil.which("nix-instantiate")
    if nix is None:
        skip("program:nix-instantiate", "apt-get install nix-bin: flake.nix is not read by Nix")
    command = [nix, "--store", "dummy://", "--eval", "--strict", "--json", "--expr", NIX.replace("ROOT", str(ROOT))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = {
        "pname": "switchcost",
        "version": VERSION,
        "src": "the source",
        "cargoBuildFlags": ["--package", "switchcost"],
        "license": ["MIT", "Apache-2.0"],
        "mainProgram": "switchcost",
        "lock": True,
    }
    assert json.loads(done.stdout) == {system: expected for system in ("aarch64-linux", "x86_64-linux")}


def test_cargo_binstall_finds_the_archive_of_a_release() -> None:
    if shutil.which("cargo") is None:
        skip("program:cargo", "the manifest is not read")
    command = ["cargo", "metadata", "--no-deps", "--locked", "--format-version", "1", "--manifest-path"]
    read = subprocess.run([*command, ROOT / "Cargo.toml"], capture_output=True, check=True)
    (package,) = [one for one in json.loads(read.stdout)["packages"] if one["name"] == "switchcost"]
    # Keys and variables as cargo-binstall's SUPPORT.md has them.
    wanted = package["metadata"]["binstall"]
    assert wanted.keys() <= {"pkg-url", "pkg-fmt", "bin-dir", "disabled-strategies", "overrides", "signing"}
    value = {"repo": package["repository"], "name": package["name"], "version": VERSION, "bin": "switchcost"}
    value["target-arch"] = "x86_64"

    def filled(template: str) -> str:
        return re.sub(r"\{ ([\w-]+) \}", lambda match: value[match[1]], template)

    # packaging/archive and packaging/release name them so.
    folder = f"switchcost-{VERSION}-x86_64-linux"
    assert one("^name=(.*)", "packaging/archive") == "switchcost-$version-$(uname -m)-linux"
    assert filled(wanted["pkg-url"]) == f"{package['repository']}/releases/download/v{VERSION}/{folder}.tar.gz"
    assert filled(wanted["bin-dir"]) == f"{folder}/switchcost"
    assert wanted["pkg-fmt"] == "tgz"


SHARED = ROOT / "crates/switchcost/tests/captured/history.txt"


def add(table: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "data/add", "--table", table, *words]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A copy of the machines of today."""
    copy = tmp_path / "modern.csv"
    shutil.copy(ROOT / "data/modern.csv", copy)
    return copy


def slower(tmp_path: Path, name: str = "result.csv") -> Path:
    """What was captured, with a digit before each figure: another machine of the same model."""
    file = tmp_path / name
    file.write_text(re.sub(r"(other|fifo),(.*),(.*),(.*)", r"\1,1\2,1\3,1\4", SHARED.read_text()))
    return file


def test_what_is_shared_becomes_a_machine_of_today(table: Path, tmp_path: Path) -> None:
    before = table.read_text()
    rows = [line for line in SHARED.read_text().splitlines() if line.startswith("amd-epyc-25/17,")]
    assert len(rows) > 2
    done = add(table, slower(tmp_path))
    assert done.returncode == 0, done.stderr
    added = table.read_text().removeprefix(before).splitlines()
    assert added[0].startswith("# amd-epyc-25/17-2: version 0.1.0, commit f23563f070ff, profile release, experiment ")
    assert [line.split(",")[0] for line in added[1:]] == ["amd-epyc-25/17-2"] * len(rows)
    assert done.stdout.startswith(f"amd-epyc-25/17-2: {len(rows)} rows")
    named = tmp_path / "named.csv"
    named.write_text(slower(tmp_path).read_text().replace(",1", ",2"))
    assert add(table, "--name", "board", named).returncode == 0
    assert table.read_text().splitlines()[-1].startswith("board,")


@pytest.mark.parametrize(
    ("pattern", "instead", "why"),
    [
        ("^# profile: release", "# profile: debug", "its build is debug"),
        ("^machine,", "host,", "its columns"),
        (r"(?s)\namd-.*", "\n", "it has no row"),
        ("^amd-epyc-25/17,", "another,", "several machines"),
        ("fifo,1[0-9.]+", "fifo,9000", "is no interval"),
        ("fifo,1[0-9.]+", "fifo,cheap", "us is 'cheap'"),
        ("fifo,1[0-9.]+", "fifo,nan", "us is 'nan'"),
        ("fifo,1", "fifo,1_1", "us is '1_1"),
        (",hop,", ",turn,", "what is 'turn'"),
        (",fifo,", ",x,", "policy is 'x'"),
        ("AMD EPYC", "\x1b[31mAMD", "characters"),
        ("fifo,1", "fifo,1,1", "cells"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_changed(
    table: Path, tmp_path: Path, pattern: str, instead: str, why: str
) -> None:
    before = table.read_text()
    file = slower(tmp_path)
    changed = re.sub(pattern, lambda _: instead, file.read_text(), count=1, flags=re.MULTILINE)
    assert changed != file.read_text()
    file.write_text(changed)
    done = add(table, slower(tmp_path, "good.csv"), file)
    assert done.returncode == 1 and why in done.stderr, done.stderr
    assert table.read_text() == before


def test_a_name_that_history_does_not_find_is_refused(table: Path, tmp_path: Path) -> None:
    before = table.read_text()
    for name in ("#board", "Board", "a board", "a\nb"):
        done = add(table, "--name", name, slower(tmp_path))
        assert done.returncode == 2 and "accepted:" in done.stderr, done.stderr
    assert table.read_text() == before


def test_what_is_there_already_is_refused(table: Path, tmp_path: Path) -> None:
    assert "already" in add(table, SHARED).stderr
    file = slower(tmp_path)
    assert add(table, file).returncode == 0
    assert "already" in add(table, file).stderr
