//! Gives the library's symbols the names of the functions whose place they take.
//!
//! The names of its dynamic symbols are overwritten, and its hash table (System V gABI, "Hash
//! Table") is made anew: it is linked with that kind of table alone. 64-bit ELF in the byte order
//! of this machine.

use crate::layout::{ALLOCATOR_SYMBOLS, MAX_NAME_BYTES, MAX_NAMED, STUB_BYTES, STUBS_MARK};

/// The library is not what is expected: it was not built by this program's build script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedLibrary(pub &'static str);

/// Of a 64-bit ELF file, in bytes: the program header table's offset, size and number of its
/// entries (gABI, "ELF Header").
const PHOFF: usize = 32;
const PHNUM: usize = 56;
const PROGRAM_HEADER: usize = 56;
const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
/// Tags of the dynamic section.
const HASH: u64 = 4;
const STRTAB: u64 = 5;
const SYMTAB: u64 = 6;
/// Bytes of a symbol.
const SYMBOL: usize = 24;

/// In a symbol: its kind, and that of a global function; its address; its size.
const INFO: usize = 4;
const GLOBAL_FUNCTION: u8 = 0x12;
const VALUE: usize = 8;
const SIZE: usize = 16;

/// Where its tables are, as offsets in the file.
struct Tables {
    hash: usize,
    names: usize,
    symbols: usize,
}

fn word<const N: usize>(library: &[u8], at: usize) -> Result<[u8; N], DamagedLibrary> {
    let bytes = at.checked_add(N).and_then(|end| library.get(at..end));
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(DamagedLibrary("it is too short"))
}

fn u32_at(library: &[u8], at: usize) -> Result<u32, DamagedLibrary> {
    word(library, at).map(u32::from_ne_bytes)
}

fn u64_at(library: &[u8], at: usize) -> Result<u64, DamagedLibrary> {
    word(library, at).map(u64::from_ne_bytes)
}

fn set_u32(library: &mut [u8], at: usize, value: u32) -> Result<(), DamagedLibrary> {
    u32_at(library, at)?;
    library[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    Ok(())
}

/// A part of the file: an entry of the program header table.
struct Part {
    kind: u32,
    offset: u64,
    address: u64,
    bytes: u64,
}

impl Part {
    fn read(library: &[u8], number: usize) -> Result<Self, DamagedLibrary> {
        let first = u64_at(library, PHOFF)? as usize;
        let at = first.saturating_add(number * PROGRAM_HEADER);
        let field = |offset: usize| u64_at(library, at.saturating_add(offset));
        let kind = u32_at(library, at)?;
        Ok(Self { kind, offset: field(8)?, address: field(16)?, bytes: field(32)? })
    }
}

fn parts(library: &[u8]) -> Result<usize, DamagedLibrary> {
    Ok(u16::from_ne_bytes(word(library, PHNUM)?).into())
}

/// Where in the file lies what will have this address.
fn offset_of(library: &[u8], address: u64) -> Result<usize, DamagedLibrary> {
    for number in 0..parts(library)? {
        let part = Part::read(library, number)?;
        let within = address.wrapping_sub(part.address);
        if part.kind == LOAD && within < part.bytes {
            return Ok(part.offset.wrapping_add(within) as usize);
        }
    }
    Err(DamagedLibrary("a table lies outside of it"))
}

/// The address of the places' code.
fn places(library: &[u8]) -> Result<u64, DamagedLibrary> {
    let mark = library.windows(STUBS_MARK.len()).position(|bytes| bytes == STUBS_MARK);
    let end = mark.ok_or(DamagedLibrary("it has no places"))? + STUBS_MARK.len();
    for number in 0..parts(library)? {
        let part = Part::read(library, number)?;
        let within = (end as u64).wrapping_sub(part.offset);
        if part.kind == LOAD && within < part.bytes {
            return Ok((part.address + within).next_multiple_of(STUB_BYTES as u64));
        }
    }
    Err(DamagedLibrary("its places lie outside of it"))
}

impl Tables {
    fn find(library: &[u8]) -> Result<Self, DamagedLibrary> {
        if library.get(..5) != Some(b"\x7fELF\x02") {
            return Err(DamagedLibrary("it is no 64-bit ELF file"));
        }
        let mut tags = [None; 3];
        for number in 0..parts(library)? {
            let Part { kind, offset, bytes, .. } = Part::read(library, number)?;
            for entry in (0..bytes as usize / 16).filter(|_| kind == DYNAMIC) {
                let at = (offset as usize).saturating_add(entry * 16);
                let tag = u64_at(library, at)?;
                let place = [HASH, STRTAB, SYMTAB].iter().position(|of| *of == tag);
                if let Some(place) = place {
                    tags[place] = Some(offset_of(library, u64_at(library, at + 8)?)?);
                }
            }
        }
        match tags {
            [Some(hash), Some(names), Some(symbols)] => Ok(Self { hash, names, symbols }),
            _ => Err(DamagedLibrary("it has no hash table of symbols")),
        }
    }

    /// Where the name of a symbol begins.
    fn name(&self, library: &[u8], symbol: u32) -> Result<usize, DamagedLibrary> {
        let at = self.symbols.saturating_add(symbol as usize * SYMBOL);
        Ok(self.names.saturating_add(u32_at(library, at)? as usize))
    }

    /// The symbol of this name, and where the name begins.
    fn symbol(&self, library: &[u8], wanted: &[u8]) -> Result<(u32, usize), DamagedLibrary> {
        for symbol in 1..u32_at(library, self.hash + 4)? {
            let at = self.name(library, symbol)?;
            if text(library, at) == wanted {
                return Ok((symbol, at));
            }
        }
        Err(DamagedLibrary("it lacks a symbol"))
    }

    /// Makes a symbol that of a function at this address.
    fn set_function(
        &self,
        library: &mut [u8],
        symbol: u32,
        address: u64,
    ) -> Result<(), DamagedLibrary> {
        let at = self.symbols.saturating_add(symbol as usize * SYMBOL);
        word::<SYMBOL>(library, at)?;
        library[at + INFO] = GLOBAL_FUNCTION;
        library[at + VALUE..at + VALUE + 8].copy_from_slice(&address.to_ne_bytes());
        library[at + SIZE..at + SYMBOL].copy_from_slice(&(STUB_BYTES as u64).to_ne_bytes());
        Ok(())
    }

    /// Makes the hash table anew, in its place.
    fn hash_again(&self, library: &mut [u8]) -> Result<(), DamagedLibrary> {
        let (buckets, symbols) = (u32_at(library, self.hash)?, u32_at(library, self.hash + 4)?);
        let bucket = |number: u32| self.hash + 8 + 4 * number as usize;
        let chain = |symbol: u32| bucket(buckets) + 4 * symbol as usize;
        if buckets == 0 {
            return Err(DamagedLibrary("its hash table is empty"));
        }
        for number in 0..buckets {
            set_u32(library, bucket(number), 0)?;
        }
        for symbol in 1..symbols {
            let at = self.name(library, symbol)?;
            let number = hash(text(library, at)) % buckets;
            let before = u32_at(library, bucket(number))?;
            set_u32(library, chain(symbol), before)?;
            set_u32(library, bucket(number), symbol)?;
        }
        Ok(())
    }
}

/// The text that begins there and ends before a zero.
fn text(library: &[u8], at: usize) -> &[u8] {
    let rest = library.get(at..).unwrap_or_default();
    rest.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The gABI's hash of a name.
fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0_u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(*byte));
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}

/// Names the first places of the library by `functions`, at most [`MAX_NAMED`] of at most
/// [`MAX_NAME_BYTES`] each; without `allocator` hides the symbols of malloc and its kin.
pub fn rename(
    library: &mut [u8],
    functions: &[&str],
    allocator: bool,
) -> Result<(), DamagedLibrary> {
    let tables = Tables::find(library)?;
    for (number, function) in functions.iter().enumerate().take(MAX_NAMED) {
        let mut place = *b"switchcost_place_00_";
        place[17] += (number / 10) as u8;
        place[18] += (number % 10) as u8;
        let mut own = [b'_'; MAX_NAME_BYTES];
        own[..place.len()].copy_from_slice(&place);
        let (symbol, at) = tables.symbol(library, &own)?;
        let code = places(library)? + (number * STUB_BYTES) as u64;
        tables.set_function(library, symbol, code)?;
        let bytes = &function.as_bytes()[..function.len().min(MAX_NAME_BYTES)];
        library[at..at + bytes.len()].copy_from_slice(bytes);
        library[at + bytes.len()] = 0;
    }
    // A program in Rust that links std dynamically has one of its own.
    let (_, personality) = tables.symbol(library, b"rust_eh_personality")?;
    library[personality] = b'.';
    // A name that no program asks for. Names may share their ends, not their beginnings.
    for function in ALLOCATOR_SYMBOLS.iter().filter(|_| !allocator) {
        // `valloc` may be the end of `pvalloc`, and hidden with it.
        if let Ok((_, at)) = tables.symbol(library, function.to_bytes()) {
            library[at] = b'.';
        }
    }
    tables.hash_again(library)
}
