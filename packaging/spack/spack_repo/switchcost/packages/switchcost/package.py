# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds switchcost from source: spack repo add packaging/spack/spack_repo/switchcost; spack install switchcost"""

from spack_repo.builtin.build_systems.cargo import CargoPackage

from spack.package import *


class Switchcost(CargoPackage):
    """Measures what a context switch costs on this machine: by the number of processes, by working
    set, and by what wakes the next one, with intervals."""

    homepage = "https://github.com/switchcost/switchcost"
    git = "https://github.com/switchcost/switchcost.git"

    license("MIT OR Apache-2.0", checked_by="switchcost")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("documents", default=True, description="classic: programs and experiments of the papers")
    variant("programs", default=True, description="run, profile, sensitivity, cost --pid")
    variant("switches", default=True, description="trace and top, by eBPF")

    conflicts("+switches", when="~programs", msg="trace and top need what run has")

    depends_on("c", type="build")
    depends_on("rust@1.85:", type="build")

    requires("platform=linux", msg="It reads the counters of Linux")

    sanity_check_is_file = ["bin/switchcost"]

    # In the workspace of its crates.
    build_directory = "crates/switchcost"

    @property
    def build_args(self):
        products = [name for name in ("documents", "programs", "switches") if self.spec.satisfies(f"+{name}")]
        return ["--locked", "--no-default-features", "--features", ",".join(products)]

    @run_after("install")
    def install_completions(self):
        switchcost = Executable(self.prefix.bin.switchcost)
        for shell, folder, file in (
            ("bash", bash_completion_path(self.prefix), "switchcost"),
            ("fish", fish_completion_path(self.prefix), "switchcost.fish"),
            ("zsh", zsh_completion_path(self.prefix), "_switchcost"),
        ):
            mkdirp(folder)
            with open(join_path(folder, file), "w") as script:
                switchcost("help", "completions", shell, output=script)

    def test_ring(self):
        """measure a ring of two for a moment"""
        switchcost = which(self.prefix.bin.switchcost)
        out = switchcost("ring", "--members", "2", "--rounds", "1", "--quiet", "--json", "-", output=str)
        assert '"schema"' in out
