//! Packs the fonts: the program has half of their bytes.

use std::io::Write;
use std::path::Path;
use std::{env, fs};

use flate2::Compression;
use flate2::write::ZlibEncoder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = env::var("OUT_DIR")?;
    for (name, font) in [("regular", dejavu::sans::regular()), ("bold", dejavu::sans::bold())] {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
        packed.write_all(font)?;
        fs::write(Path::new(&out).join(name), packed.finish()?)?;
    }
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
