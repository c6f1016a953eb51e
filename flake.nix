{
  description = "What a context switch costs here, at your scale, with your working set, and whether the number can be trusted";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      cargo = builtins.fromTOML (builtins.readFile ./Cargo.toml);
      switchcost =
        pkgs:
        pkgs.rustPlatform.buildRustPackage {
          pname = "switchcost";
          version = cargo.workspace.package.version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          cargoBuildFlags = [
            "--package"
            "switchcost"
          ];
          # They measure, and start programs of the machine: cargo test runs them.
          doCheck = false;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = ''
            installShellCompletion --cmd switchcost \
              --bash <($out/bin/switchcost help completions bash) \
              --fish <($out/bin/switchcost help completions fish) \
              --zsh <($out/bin/switchcost help completions zsh)
          '';
          meta = {
            description = "Measure what a context switch costs on this machine";
            homepage = cargo.workspace.package.repository;
            license = with pkgs.lib.licenses; [
              mit
              asl20
            ];
            platforms = systems;
            mainProgram = "switchcost";
          };
        };
    in
    {
      packages = nixpkgs.lib.genAttrs systems (system: {
        default = switchcost nixpkgs.legacyPackages.${system};
      });
    };
}
